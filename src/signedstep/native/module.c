/* Passes over long vectors in C, for `signedstep.native`. What they cannot read is refused by None, and left to torch.

   How columns are cut into segments, and so every rounding, depends on n alone and not on the number of threads. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "compiler.h"
#include "vectors.h"

#define MOST_VECTORS 4
#define MOST_DIFFERENCES 2 /* made on the stack */
#define MOST_SEGMENTS 64
#define SHORTEST_SEGMENT 2048
#define WORTH_THREADS 100000 /* numbers below which waking threads takes longer than reading them */

struct products {
    const void **rows;
    size_t r;
    const void *plus[MOST_VECTORS], *minus[MOST_VECTORS]; /* a vector is plus - minus, or plus where minus is NULL */
    size_t vectors, count;
    int own; /* whether V V' is wanted */
};
struct combination {
    const void **rows;
    size_t r;
    const double *c;
    double scale;
    const void *v;
    void *out;
};
struct differences {
    const void *plus[MOST_DIFFERENCES], *minus[MOST_DIFFERENCES];
    void *out[MOST_DIFFERENCES];
    size_t count;
    double scale;
};
struct copies { /* the parts of a vector, one after the other, and where they are kept */
    char *v, **parts;
    size_t *ends, count, itemsize;
    int gather; /* into v, not from it */
};

#define NAME(name) name##_float
#define real float
#include "passes.h"
#undef NAME
#undef real
#define NAME(name) name##_double
#define real double
#include "passes.h"

/* One pass, cut into segments. */
struct pass {
    void (*run)(const struct pass *, size_t segment, size_t first, size_t last);
    const void *task;
    double *sums; /* `width` of them for each segment */
    size_t width, segments;
    struct kind kind;
};

static void run_products(const struct pass *pass, size_t segment, size_t first, size_t last) {
    double *out = pass->sums + segment * pass->width;
    (pass->kind.is_float ? products_float : products_double)(pass->task, first, last, out);
}

static void run_combination(const struct pass *pass, size_t segment, size_t first, size_t last) {
    double *out = pass->sums + segment * pass->width;
    (pass->kind.is_float ? combine_float : combine_double)(pass->task, first, last, out);
}

static void run_differences(const struct pass *pass, size_t segment, size_t first, size_t last) {
    (pass->kind.is_float ? differences_float : differences_double)(pass->task, first, last);
}

static void run_copies(const struct pass *pass, size_t segment, size_t first, size_t last) {
    const struct copies *task = pass->task;
    for (size_t i = 0, start = 0; i < task->count && start < last; start = task->ends[i++]) {
        size_t from = first > start ? first : start, to = last < task->ends[i] ? last : task->ends[i];
        if (from >= to) continue;
        char *whole = task->v + from * task->itemsize, *part = task->parts[i] + (from - start) * task->itemsize;
        memcpy(task->gather ? whole : part, task->gather ? part : whole, (to - from) * task->itemsize);
    }
}

/* torch's own pool of threads, if it is GNU's: a second pool would wait for the cores on which the first one spins. */
static void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
static int (*thread_number)(void), (*thread_count)(void);

static void find_threads(void) {
    *(void **)&parallel = dlsym(RTLD_DEFAULT, "GOMP_parallel");
    *(void **)&thread_number = dlsym(RTLD_DEFAULT, "omp_get_thread_num");
    *(void **)&thread_count = dlsym(RTLD_DEFAULT, "omp_get_num_threads");
    if (thread_number == NULL || thread_count == NULL) parallel = NULL;
}

static void do_without_threads(void) { parallel = NULL; } /* in a forked process: GNU's pool does not come along */

static void run_part(const struct pass *pass, size_t part, size_t parts) {
    size_t n = pass->kind.n, blocks = (n + 511) / 512; /* segments begin where cache lines do, if rows do */
    for (size_t s = pass->segments * part / parts; s < pass->segments * (part + 1) / parts; s++) {
        size_t first = blocks * s / pass->segments * 512, last = blocks * (s + 1) / pass->segments * 512;
        pass->run(pass, s, first, last < n ? last : n);
    }
}

static void run_share(void *pass) { run_part(pass, (size_t)thread_number(), (size_t)thread_count()); }

static void run(const struct pass *pass, size_t rows, long threads) {
    Py_BEGIN_ALLOW_THREADS
    if (threads > 1 && parallel != NULL && pass->segments > 1 && rows * pass->kind.n >= WORTH_THREADS)
        parallel(run_share, (void *)pass, (unsigned)threads, 0);
    else
        run_part(pass, 0, 1);
    Py_END_ALLOW_THREADS
}

static size_t segments(size_t n) {
    size_t count = n / SHORTEST_SEGMENT;
    return count < 1 ? 1 : count > MOST_SEGMENTS ? MOST_SEGMENTS : count;
}

/* One pass with `width` sums, by segments in their order, into `out`. -> -1 without memory */
static int summed(struct pass pass, size_t rows, long threads, double *out) {
    memset(out, 0, pass.width * sizeof *out);
    pass.sums = out;
    if (pass.segments == 1) {
        run(&pass, rows, threads);
        return 0;
    }
    pass.sums = calloc(pass.segments * pass.width + 1, sizeof *pass.sums);
    if (pass.sums == NULL) return -1;
    run(&pass, rows, threads);
    for (size_t s = 0; s < pass.segments; s++)
        for (size_t i = 0; i < pass.width; i++) out[i] += pass.sums[s * pass.width + i];
    free(pass.sums);
    return 0;
}

static int sum_products(const struct products *task, const struct kind *kind, long threads, double *out) {
    size_t width = task->count * task->r + (task->own ? task->vectors * task->vectors : 0);
    return summed((struct pass){run_products, task, NULL, width, segments(kind->n), *kind}, task->r, threads, out);
}

/* Whether sums of float products are what they seem: beyond these sizes squares of single numbers may have left the range. */
static int is_safe(const double *sums, size_t count, size_t step, int is_float, double least) {
    for (size_t i = 0; is_float && i < count; i++)
        if (!(fabs(sums[i * step]) >= least && fabs(sums[i * step]) < 1e30)) return 0;
    return 1;
}

static PyObject *refused(void) {
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* An item that its sequence keeps alive. */
static PyObject *item(PyObject *sequence, size_t i) {
    PyObject *found = PySequence_GetItem(sequence, (Py_ssize_t)i);
    Py_XDECREF(found);
    return found;
}

/* The buffer of an array of float64, without gaps. -> whether it is one */
static int takes(PyObject *array, int flags, Py_buffer *buffer) {
    if (PyObject_GetBuffer(array, buffer, PyBUF_FORMAT | PyBUF_ND | flags)) {
        PyErr_Clear();
        return 0;
    }
    if (buffer->ndim == 1 && buffer->itemsize == sizeof(double) && buffer->format[0] == 'd') return 1;
    PyBuffer_Release(buffer);
    return 0;
}

/* Where the two ends of each difference are. -> whether all of them can be read */
static int find_vectors(struct products *task, PyObject *V, const struct kind *kind) {
    size_t differences = 0;
    for (size_t v = 0; v < task->vectors; v++) {
        PyObject *ends = item(V, v);
        PyObject *plus = ends == NULL ? NULL : item(ends, 0), *minus = plus == NULL ? NULL : item(ends, 1);
        if (minus == NULL || (task->plus[v] = numbers(plus, kind, kind->n)) == NULL) return 0;
        if (minus == Py_None) continue;
        if ((task->minus[v] = numbers(minus, kind, kind->n)) == NULL || ++differences > MOST_DIFFERENCES) return 0;
    }
    return 1;
}

/* products(threads, A, V, count, out): V A' of the first `count` vectors, and V V', for vectors (plus, minus) or (plus, None)
   -> whether the sums can be trusted */
static PyObject *products(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    Py_ssize_t vectors = given == 5 ? PySequence_Size(args[2]) : 0;
    if (vectors < 1 || vectors > MOST_VECTORS) return refused();
    struct products task = {.vectors = (size_t)vectors, .count = PyLong_AsSize_t(args[3]), .own = 1};
    struct kind kind;
    if (task.count < 1 || task.count > task.vectors || !kind_of(item(item(args[2], 0), 0), &kind)) return refused();
    Py_buffer out;
    if (!find_vectors(&task, args[2], &kind) || !takes(args[4], PyBUF_WRITABLE, &out)) return refused();
    size_t met = (size_t)out.len / sizeof(double) - task.vectors * task.vectors;
    task.r = met / task.count;
    task.rows = rows_of(args[1], &kind, task.r);
    int failed = task.rows == NULL || sum_products(&task, &kind, PyLong_AsLong(args[0]), out.buf);
    int safe = !failed && is_safe(out.buf, met, 1, kind.is_float, 0) &&
               is_safe((double *)out.buf + met, task.vectors, task.vectors + 1, kind.is_float, 1e-30);
    PyBuffer_Release(&out);
    if (failed && task.rows != NULL) PyErr_NoMemory();
    free(task.rows);
    return failed ? refused() : PyBool_FromLong(safe);
}

static PyObject *listed(const double *sums, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) PyList_SetItem(list, (Py_ssize_t)i, PyFloat_FromDouble(sums[i]));
    return list;
}

/* dots(threads, vector, others) -> the products of a vector with up to four others, if they can be trusted */
static PyObject *dots(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    Py_ssize_t r = given == 3 ? PySequence_Size(args[2]) : 0;
    struct kind kind;
    if (r < 1 || r > MOST_VECTORS || !kind_of(args[1], &kind)) return refused();
    const void *others[MOST_VECTORS];
    double sums[MOST_VECTORS];
    struct products task = {.rows = others, .r = (size_t)r, .vectors = 1, .count = 1};
    if ((task.plus[0] = numbers(args[1], &kind, kind.n)) == NULL) return refused();
    for (size_t i = 0; i < task.r; i++) {
        PyObject *other = item(args[2], i);
        if (other == NULL || (others[i] = numbers(other, &kind, kind.n)) == NULL) return refused();
    }
    if (sum_products(&task, &kind, PyLong_AsLong(args[0]), sums)) return PyErr_NoMemory();
    return is_safe(sums, task.r, 1, kind.is_float, 1e-30) ? listed(sums, task.r) : refused();
}

/* combine(threads, A, c, scale, v, out): out = c[0] A[0] + ... + scale v
   -> the products of out with v and with itself, in a list that is empty if they cannot be trusted */
static PyObject *combine(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    struct kind kind;
    Py_buffer c;
    if (given != 6 || !kind_of(args[4], &kind) || !takes(args[2], 0, &c)) return refused();
    struct combination task = {.r = (size_t)c.len / sizeof(double), .c = c.buf, .scale = PyFloat_AsDouble(args[3])};
    if ((task.v = numbers(args[4], &kind, kind.n)) != NULL && (task.out = numbers(args[5], &kind, kind.n)) != NULL)
        task.rows = rows_of(args[1], &kind, task.r);
    double sums[2];
    struct pass pass = {run_combination, &task, NULL, 2, segments(kind.n), kind};
    int failed = task.rows == NULL || PyErr_Occurred() || summed(pass, task.r, PyLong_AsLong(args[0]), sums);
    PyBuffer_Release(&c);
    if (failed && task.rows != NULL && !PyErr_Occurred()) PyErr_NoMemory();
    free(task.rows);
    if (failed) return refused();
    return listed(sums, is_safe(sums, 2, 1, kind.is_float, 1e-30) ? 2 : 0);
}

/* differences(threads, scale, triples): out = scale (plus - minus) for each (plus, minus, out) -> whether they were made */
static PyObject *differences(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    Py_ssize_t count = given == 3 ? PySequence_Size(args[2]) : 0;
    struct kind kind;
    if (count < 1 || count > MOST_DIFFERENCES || !kind_of(item(item(args[2], 0), 0), &kind)) return refused();
    struct differences task = {.count = (size_t)count, .scale = PyFloat_AsDouble(args[1])};
    for (size_t i = 0; i < task.count; i++) {
        PyObject *triple = item(args[2], i), *v[3];
        void *found[3];
        for (size_t j = 0; j < 3; j++)
            if ((v[j] = triple == NULL ? NULL : item(triple, j)) == NULL ||
                (found[j] = numbers(v[j], &kind, kind.n)) == NULL)
                return refused();
        task.plus[i] = found[0], task.minus[i] = found[1], task.out[i] = found[2];
    }
    if (PyErr_Occurred()) return NULL;
    struct pass pass = {run_differences, &task, NULL, 0, segments(kind.n), kind};
    run(&pass, 3 * task.count, PyLong_AsLong(args[0])); /* two vectors are read for each that is written */
    Py_RETURN_TRUE;
}

/* Where the parts are. -> whether they are those of v */
static int find_parts(struct copies *task, PyObject *parts, const struct kind *kind) {
    size_t end = 0;
    for (size_t i = 0; i < task->count; i++) {
        PyObject *part = item(parts, i);
        size_t count = part == NULL ? 0 : asked(part, numel_name);
        if (part == NULL || PyErr_Occurred()) return 0;
        if ((task->parts[i] = address(part, kind)) == NULL && (count > 0 || PyErr_Occurred())) return 0;
        task->ends[i] = end += count;
    }
    return end == kind->n;
}

static PyObject *copied(PyObject *const *args, Py_ssize_t given, int gather) {
    Py_ssize_t count = given == 3 ? PySequence_Size(args[2]) : 0;
    struct kind kind;
    if (count < 1 || !kind_of(args[1], &kind)) return refused();
    struct copies task = {.count = (size_t)count, .itemsize = kind.is_float ? 4 : 8, .gather = gather};
    task.v = numbers(args[1], &kind, kind.n);
    task.parts = malloc(task.count * (sizeof *task.parts + sizeof *task.ends));
    if (task.parts == NULL) return PyErr_NoMemory();
    task.ends = (size_t *)(task.parts + task.count);
    int found = task.v != NULL && find_parts(&task, args[2], &kind);
    struct pass pass = {run_copies, &task, NULL, 0, segments(kind.n), kind};
    if (found) run(&pass, 2, PyLong_AsLong(args[0]));
    free(task.parts);
    if (found) Py_RETURN_TRUE;
    return refused();
}

/* gather(threads, v, parts): v from tensors, one after the other -> whether it was done */
static PyObject *gather(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    return copied(args, given, 1);
}

/* scatter(threads, v, parts): v into tensors, one after the other -> whether it was done */
static PyObject *scatter(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    return copied(args, given, 0);
}

/* prefer_large_pages(address, bytes), before memory is first written: the system then clears it by megabytes, not by 4 KiB. */
static PyObject *prefer_large_pages(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    if (given != 2) return refused();
#ifdef MADV_HUGEPAGE
    uintptr_t first = ((uintptr_t)PyLong_AsVoidPtr(args[0]) + 4095) / 4096 * 4096;
    uintptr_t last = (uintptr_t)PyLong_AsVoidPtr(args[0]) + PyLong_AsSize_t(args[1]);
    if (first < last) madvise((void *)first, last - first, MADV_HUGEPAGE); /* a wish; nothing depends on it */
#endif
    return refused();
}

#define ENTRY(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef methods[] = {ENTRY(products), ENTRY(dots), ENTRY(combine), ENTRY(differences), ENTRY(gather),
                                ENTRY(scatter), ENTRY(prefer_large_pages), {NULL, NULL, 0, NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_native", .m_methods = methods};

PyMODINIT_FUNC PyInit__native(void) {
    if (find_torch()) return NULL;
    find_threads();
    pthread_atfork(NULL, NULL, do_without_threads);
    return PyModuleDef_Init(&module);
}
