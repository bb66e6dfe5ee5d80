/* Passes over long vectors in C, for `signedstep.native`, which checks what it hands over: addresses and lengths.

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
struct difference {
    const void *plus, *minus;
    double scale;
    void *out;
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
    size_t width, n, segments;
    int is_float;
};

static void run_products(const struct pass *pass, size_t segment, size_t first, size_t last) {
    double *out = pass->sums + segment * pass->width;
    (pass->is_float ? products_float : products_double)(pass->task, first, last, out);
}

static void run_combination(const struct pass *pass, size_t segment, size_t first, size_t last) {
    (pass->is_float ? combine_float : combine_double)(pass->task, first, last);
}

static void run_difference(const struct pass *pass, size_t segment, size_t first, size_t last) {
    (pass->is_float ? difference_float : difference_double)(pass->task, first, last);
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
    size_t blocks = (pass->n + 511) / 512; /* segments begin where cache lines do, if rows do */
    for (size_t s = pass->segments * part / parts; s < pass->segments * (part + 1) / parts; s++) {
        size_t first = blocks * s / pass->segments * 512, last = blocks * (s + 1) / pass->segments * 512;
        pass->run(pass, s, first, last < pass->n ? last : pass->n);
    }
}

static void run_share(void *pass) { run_part(pass, (size_t)thread_number(), (size_t)thread_count()); }

static void run(struct pass *pass, size_t rows, unsigned threads) {
    Py_BEGIN_ALLOW_THREADS
    if (threads > 1 && parallel != NULL && pass->segments > 1 && rows * pass->n >= WORTH_THREADS)
        parallel(run_share, pass, threads, 0);
    else
        run_part(pass, 0, 1);
    Py_END_ALLOW_THREADS
}

static size_t segments(size_t n) {
    size_t count = n / SHORTEST_SEGMENT;
    return count < 1 ? 1 : count > MOST_SEGMENTS ? MOST_SEGMENTS : count;
}

static const void **addresses(PyObject *base, size_t step, size_t count) {
    const char *first = PyLong_AsVoidPtr(base);
    const void **rows = malloc((count + 1) * sizeof *rows);
    for (size_t i = 0; rows != NULL && i < count; i++) rows[i] = first + i * step;
    return rows;
}

/* The sums of a product, by segments in their order, into `out`. */
static int sum_products(struct products *task, size_t n, int is_float, unsigned threads, double *out) {
    size_t width = task->count * task->r + (task->own ? task->vectors * task->vectors : 0);
    struct pass pass = {run_products, task, NULL, width, n, segments(n), is_float};
    memset(out, 0, width * sizeof *out);
    if (pass.segments == 1) {
        pass.sums = out;
        run(&pass, task->r, threads);
        return 0;
    }
    pass.sums = calloc(pass.segments * width, sizeof *pass.sums);
    if (pass.sums == NULL) return -1;
    run(&pass, task->r, threads);
    for (size_t s = 0; s < pass.segments; s++)
        for (size_t i = 0; i < width; i++) out[i] += pass.sums[s * width + i];
    free(pass.sums);
    return 0;
}

static int holds(const Py_buffer *buffer, size_t doubles) { return buffer->len == (Py_ssize_t)(doubles * sizeof(double)); }
static PyObject *wrong(void) {
    PyErr_SetString(PyExc_ValueError, "arguments that do not fit together");
    return NULL;
}

/* Whether sums of float products are what they seem: beyond these sizes squares of single numbers may have left the range. */
static int is_safe(const double *sums, size_t count, size_t step, int is_float, double least) {
    for (size_t i = 0; is_float && i < count; i++)
        if (!(fabs(sums[i * step]) >= least && fabs(sums[i * step]) < 1e30)) return 0;
    return 1;
}

/* products(is_float, n, threads, rows, step, r, vectors, count, out): V A' of the first `count` vectors, and V V'
   -> whether they can be trusted; `vectors` holds the addresses of plus and minus in turn. */
static PyObject *products(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    if (given != 9 || !PyTuple_Check(args[6])) return wrong();
    struct products task = {.r = PyLong_AsSize_t(args[5]), .count = PyLong_AsSize_t(args[7]), .own = 1};
    task.vectors = (size_t)PyTuple_Size(args[6]) / 2;
    if (task.vectors > MOST_VECTORS || task.count > task.vectors) return wrong();
    size_t differences = 0;
    for (size_t v = 0; v < task.vectors; v++) {
        task.plus[v] = PyLong_AsVoidPtr(PyTuple_GetItem(args[6], 2 * v));
        task.minus[v] = PyLong_AsVoidPtr(PyTuple_GetItem(args[6], 2 * v + 1));
        differences += task.minus[v] != NULL;
    }
    Py_buffer out;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[8], &out, PyBUF_WRITABLE)) return NULL;
    if (differences > MOST_DIFFERENCES || !holds(&out, task.count * task.r + task.vectors * task.vectors)) {
        PyBuffer_Release(&out);
        return wrong();
    }
    task.rows = addresses(args[3], PyLong_AsSize_t(args[4]), task.r);
    int is_float = PyLong_AsLong(args[0]);
    int failed = task.rows == NULL ||
                 sum_products(&task, PyLong_AsSize_t(args[1]), is_float, PyLong_AsLong(args[2]), out.buf);
    size_t met = task.count * task.r;
    int safe = !failed && is_safe(out.buf, met, 1, is_float, 0) &&
               is_safe((double *)out.buf + met, task.vectors, task.vectors + 1, is_float, 1e-30);
    free(task.rows);
    PyBuffer_Release(&out);
    return failed ? PyErr_NoMemory() : PyBool_FromLong(safe);
}

/* dots(is_float, n, threads, vector, *others) -> the products of a vector with up to four others, if they can be trusted. */
static PyObject *dots(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    if (given < 4 || given > 4 + MOST_VECTORS) return wrong();
    const void *others[MOST_VECTORS];
    double sums[MOST_VECTORS];
    struct products task = {.rows = others, .r = (size_t)given - 4, .vectors = 1, .count = 1};
    task.plus[0] = PyLong_AsVoidPtr(args[3]);
    for (size_t i = 0; i < task.r; i++) others[i] = PyLong_AsVoidPtr(args[4 + i]);
    if (PyErr_Occurred()) return NULL;
    int is_float = PyLong_AsLong(args[0]);
    if (sum_products(&task, PyLong_AsSize_t(args[1]), is_float, PyLong_AsLong(args[2]), sums)) return PyErr_NoMemory();
    if (!is_safe(sums, task.r, 1, is_float, 1e-30)) Py_RETURN_NONE;
    PyObject *list = PyList_New((Py_ssize_t)task.r);
    for (size_t i = 0; list != NULL && i < task.r; i++) PyList_SetItem(list, (Py_ssize_t)i, PyFloat_FromDouble(sums[i]));
    return list;
}

/* combine(is_float, n, threads, rows, step, r, c, scale, v, out): out = c[0] A[0] + ... + scale v. */
static PyObject *combine(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    if (given != 10) return wrong();
    struct combination task = {.r = PyLong_AsSize_t(args[5]), .scale = PyFloat_AsDouble(args[7])};
    task.v = PyLong_AsVoidPtr(args[8]);
    task.out = PyLong_AsVoidPtr(args[9]);
    Py_buffer c;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[6], &c, PyBUF_SIMPLE)) return NULL;
    if (!holds(&c, task.r)) {
        PyBuffer_Release(&c);
        return wrong();
    }
    task.c = c.buf;
    task.rows = addresses(args[3], PyLong_AsSize_t(args[4]), task.r);
    size_t n = PyLong_AsSize_t(args[1]);
    struct pass pass = {run_combination, &task, NULL, 0, n, segments(n), PyLong_AsLong(args[0])};
    if (task.rows != NULL && n) run(&pass, task.r, PyLong_AsLong(args[2]));
    int failed = task.rows == NULL;
    free(task.rows);
    PyBuffer_Release(&c);
    if (failed) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* difference(is_float, n, threads, plus, minus, scale, out): out = scale (plus - minus). */
static PyObject *difference(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    if (given != 7) return wrong();
    struct difference task = {PyLong_AsVoidPtr(args[3]), PyLong_AsVoidPtr(args[4]), PyFloat_AsDouble(args[5]),
                              PyLong_AsVoidPtr(args[6])};
    size_t n = PyLong_AsSize_t(args[1]);
    struct pass pass = {run_difference, &task, NULL, 0, n, segments(n), PyLong_AsLong(args[0])};
    if (PyErr_Occurred()) return NULL;
    run(&pass, 3, PyLong_AsLong(args[2])); /* two vectors are read, one is written */
    Py_RETURN_NONE;
}

/* prefer_large_pages(address, bytes), before memory is first written: the system then clears it by megabytes, not by 4 KiB. */
static PyObject *prefer_large_pages(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    if (given != 2) return wrong();
#ifdef MADV_HUGEPAGE
    uintptr_t first = ((uintptr_t)PyLong_AsVoidPtr(args[0]) + 4095) / 4096 * 4096;
    uintptr_t last = (uintptr_t)PyLong_AsVoidPtr(args[0]) + PyLong_AsSize_t(args[1]);
    if (first < last) madvise((void *)first, last - first, MADV_HUGEPAGE); /* a wish; nothing depends on it */
#endif
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

#define ENTRY(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef methods[] = {ENTRY(products),   ENTRY(dots), ENTRY(combine), ENTRY(difference), ENTRY(prefer_large_pages),
                                {NULL, NULL, 0, NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_native", .m_methods = methods};

PyMODINIT_FUNC PyInit__native(void) {
    find_threads();
    pthread_atfork(NULL, NULL, do_without_threads);
    return PyModuleDef_Init(&module);
}
