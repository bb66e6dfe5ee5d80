/* Algebra on small matrices in C, for `signedstep.native.small`, which hands over C-contiguous arrays of doubles. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>

#include "matrices.h"

#define MOST_ARRAYS 5

/* What Python hands over: C-contiguous arrays of doubles, of which those from `outputs` on are written to. */
struct given {
    size_t k, count;
    Py_buffer arrays[MOST_ARRAYS];
    double *at[MOST_ARRAYS], *room;
    double number;
};

static void release(struct given *given) {
    while (given->count > 0) PyBuffer_Release(given->arrays + --given->count);
    free(given->room);
}

/* Each letter of `shapes` is an argument: a matrix of k x k numbers, a vector of k, or one number. -> 0 if they are not */
static int take(struct given *given, PyObject *const *args, Py_ssize_t count, const char *shapes, size_t outputs) {
    Py_ssize_t k = count == (Py_ssize_t)strlen(shapes) ? PyObject_Length(args[0]) : -1;
    *given = (struct given){.k = (size_t)k};
    if (k < 1 || k > MOST_ROWS) {
        PyErr_SetString(PyExc_ValueError, "a number of arrays, or a size, that is not known");
        return 0;
    }
    given->room = malloc((6 * given->k + 2) * given->k * sizeof(double));
    for (size_t i = 0; given->room != NULL && i < (size_t)count; i++) {
        if (shapes[i] == 'n') {
            given->number = PyFloat_AsDouble(args[i]);
            continue;
        }
        Py_buffer *array = given->arrays + given->count;
        if (PyObject_GetBuffer(args[i], array, i < outputs ? PyBUF_SIMPLE : PyBUF_WRITABLE)) break;
        given->count++;
        given->at[i] = array->buf;
        if (array->len != (Py_ssize_t)((shapes[i] == 'm' ? k * k : k) * sizeof(double))) {
            PyErr_SetString(PyExc_ValueError, "arrays that do not fit together");
            break;
        }
    }
    if (given->room == NULL) PyErr_NoMemory();
    if (!PyErr_Occurred()) return 1;
    release(given);
    return 0;
}

/* eigen(A, w, W) -> whether they were found */
static PyObject *eigen(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct given given;
    if (!take(&given, args, count, "mvm", 1)) return NULL;
    int found = eigen_of(given.at[0], given.k, given.at[1], given.at[2], given.room);
    release(&given);
    return PyBool_FromLong(found);
}

/* pencil(P, M, noise, mu, V) -> whether P has full rank, and all went well */
static PyObject *pencil(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct given given;
    if (!take(&given, args, count, "mmvvm", 3)) return NULL;
    int found = pencil_of(given.at[0], given.at[1], given.at[2], given.k, given.at[3], given.at[4], given.room);
    release(&given);
    return PyBool_FromLong(found);
}

/* inverse(M, out) -> whether M is regular; None if nothing was found */
static PyObject *inverse(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct given given;
    if (!take(&given, args, count, "mm", 1)) return NULL;
    int found = inverse_of(given.at[0], given.k, given.at[1], given.room);
    release(&given);
    if (!found) Py_RETURN_NONE;
    return PyBool_FromLong(found == REGULAR);
}

/* within(P, N, least, w, V) -> the rank of P, or -1 */
static PyObject *within(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    struct given given;
    if (!take(&given, args, count, "mmnvm", 3)) return NULL;
    long rank = within_of(given.at[0], given.at[1], given.number, given.k, given.at[3], given.at[4], given.room);
    release(&given);
    return PyLong_FromLong(rank);
}

#define ENTRY(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef methods[] = {ENTRY(eigen), ENTRY(pencil), ENTRY(inverse), ENTRY(within), {NULL, NULL, 0, NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_small", .m_methods = methods};

PyMODINIT_FUNC PyInit__small(void) { return PyModuleDef_Init(&module); }
