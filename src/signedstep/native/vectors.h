/* Vectors of torch's: where their numbers are, if a pass may read them.

   torch has no C interface that works without being compiled against one of its versions, so tensors are asked through
   the methods that Python calls; from here that takes a third of the time. */

static PyObject *float32, *float64; /* torch's, and the names of what a tensor is asked */
static PyObject *dtype_name, *numel_name, *is_cpu_name, *is_contiguous_name, *is_neg_name, *data_ptr_name;

static int find_torch(void) {
    PyObject *torch = PyImport_ImportModule("torch");
    if (torch == NULL) return -1;
    float32 = PyObject_GetAttrString(torch, "float32");
    float64 = PyObject_GetAttrString(torch, "float64");
    Py_DECREF(torch);
    dtype_name = PyUnicode_InternFromString("dtype");
    numel_name = PyUnicode_InternFromString("numel");
    is_cpu_name = PyUnicode_InternFromString("is_cpu");
    is_contiguous_name = PyUnicode_InternFromString("is_contiguous");
    is_neg_name = PyUnicode_InternFromString("is_neg");
    data_ptr_name = PyUnicode_InternFromString("data_ptr");
    return PyErr_Occurred() ? -1 : 0;
}

/* The answer of a tensor, 0 where it raises: then there is an exception for `PyErr_Occurred`. */
static size_t asked(PyObject *v, PyObject *method) {
    PyObject *answer = PyObject_CallMethodObjArgs(v, method, NULL);
    size_t number = answer == NULL ? 0 : answer == Py_True ? 1 : answer == Py_False ? 0 : PyLong_AsSize_t(answer);
    Py_XDECREF(answer);
    return number;
}

static int has(PyObject *v, PyObject *name, const PyObject *value) {
    PyObject *found = PyObject_GetAttr(v, name);
    Py_XDECREF(found); /* all that is compared here lives as long as torch */
    return found == value;
}

/* What the vectors of one pass have in common. */
struct kind {
    int is_float;
    size_t n;
};

/* The kind of a vector. -> whether passes know it */
static int kind_of(PyObject *v, struct kind *kind) {
    PyObject *dtype = PyObject_GetAttr(v, dtype_name);
    Py_XDECREF(dtype);
    if (dtype == NULL || (dtype != float32 && dtype != float64)) return 0;
    *kind = (struct kind){dtype == float32, asked(v, numel_name)};
    return !PyErr_Occurred();
}

/* The address of what a tensor holds, numbers of a kind, one after the other in memory; NULL if it does not. */
static void *address(PyObject *v, const struct kind *kind) {
    int plain = has(v, dtype_name, kind->is_float ? float32 : float64) && has(v, is_cpu_name, Py_True) &&
                asked(v, is_contiguous_name) && !asked(v, is_neg_name);
    return plain && !PyErr_Occurred() ? (void *)(uintptr_t)asked(v, data_ptr_name) : NULL;
}

/* The same, of just so many numbers. Zeros that autograd has not made yet have the address 0. */
static void *numbers(PyObject *v, const struct kind *kind, size_t count) {
    return asked(v, numel_name) == count ? address(v, kind) : NULL;
}

/* The addresses of the rows of a matrix, to be freed; NULL as above. */
static const void **rows_of(PyObject *A, const struct kind *kind, size_t r) {
    const char *first = r == 0 ? "" : numbers(A, kind, r * kind->n);
    if (first == NULL) return NULL;
    const void **rows = malloc((r + 1) * sizeof *rows);
    if (rows == NULL) PyErr_NoMemory();
    for (size_t i = 0; rows != NULL && i < r; i++) rows[i] = first + i * kind->n * (kind->is_float ? 4 : 8);
    return rows;
}
