/* Algebra on small matrices, row after row, in one thread.

   Sums over a row run in LANES of their own, which the compiler cannot do by itself: it may not change their order. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "compiler.h"

#define MOST_ROWS 128 /* of square matrices; larger ones are for LAPACK */
#define LANES 8
#define MOST_SWEEPS 40 /* for one eigenvalue; two or three are usual */
#define SINGULAR 1
#define REGULAR 2

INLINE double dot(const double *a, const double *b, size_t n) {
    double lanes[LANES] = {0}, sum = 0;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (size_t lane = 0; lane < LANES; lane++) lanes[lane] += a[j + lane] * b[j + lane];
    for (size_t lane = 0; lane < LANES; lane++) sum += lanes[lane];
    for (; j < n; j++) sum += a[j] * b[j];
    return sum;
}

/* to += t from */
INLINE void add(double *restrict to, double t, const double *restrict from, size_t n) {
    for (size_t j = 0; j < n; j++) to[j] += t * from[j];
}

INLINE void scale(double *row, double t, size_t n) {
    for (size_t j = 0; j < n; j++) row[j] *= t;
}

INLINE double largest(const double *A, size_t n) {
    double most = 0;
    for (size_t j = 0; j < n; j++) most = fabs(A[j]) > most || isnan(A[j]) ? fabs(A[j]) : most;
    return most;
}

INLINE void swap(double *restrict a, double *restrict b, size_t n) {
    for (size_t j = 0; j < n; j++) {
        double kept = a[j];
        a[j] = b[j];
        b[j] = kept;
    }
}

INLINE void transpose(double *A, size_t k) {
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < i; j++) {
            double kept = A[i * k + j];
            A[i * k + j] = A[j * k + i];
            A[j * k + i] = kept;
        }
}

/* A = Q T Q' by reflections (Householder): T as diagonal d and e beside it, Q' into W. A is used up; `v` is room. */
INLINE void tridiagonalise(double *A, size_t k, double *d, double *e, double *W, double *v) {
    for (size_t i = 0; i + 2 < k; i++) { /* row i right of its diagonal holds the reflection, its length is in e */
        double *x = A + i * k + i + 1;
        size_t rest = k - i - 1;
        double tail = dot(x + 1, x + 1, rest - 1), length = sqrt(x[0] * x[0] + tail);
        d[i] = A[i * k + i];
        if (tail == 0) {
            e[i] = x[0];
            x[0] = 0;
            continue;
        }
        e[i] = x[0] > 0 ? -length : length;
        x[0] -= e[i];
        scale(x, sqrt(2 / (x[0] * x[0] + tail)), rest); /* the reflection is I - x x' */
        memset(v, 0, rest * sizeof *v);
        for (size_t j = 0; j < rest; j++) add(v, x[j], A + (i + 1 + j) * k + i + 1, rest);
        add(v, -0.5 * dot(v, x, rest), x, rest);
        for (size_t j = 0; j < rest; j++) {
            double *row = A + (i + 1 + j) * k + i + 1;
            for (size_t l = 0; l < rest; l++) row[l] -= x[j] * v[l] + v[j] * x[l];
        }
    }
    if (k > 1) {
        d[k - 2] = A[(k - 2) * k + k - 2];
        e[k - 2] = A[(k - 2) * k + k - 1];
    }
    d[k - 1] = A[k * k - 1];
    memset(W, 0, k * k * sizeof *W);
    for (size_t i = 0; i < k; i++) W[i * k + i] = 1;
    for (size_t i = k - 1; i-- > 0;) {
        const double *x = A + i * k + i + 1;
        if (i + 2 >= k || x[0] == 0) continue;
        for (size_t j = i + 1; j < k; j++) {
            double *row = W + j * k + i + 1;
            add(row, -dot(row, x, k - i - 1), x, k - i - 1);
        }
    }
}

/* T = U D U' by implicit shifts (Golub and Van Loan, algorithm 8.3.2): d becomes D, the rows of W are turned by U'.
   -> whether it converged */
INLINE int diagonalise(double *d, double *e, double *W, size_t k) {
    size_t last = k - 1;
    for (int sweeps = 0; last > 0;) {
        size_t first = last; /* of the block that ends at `last`: beside it e is nothing */
        while (first > 0 && !(fabs(e[first - 1]) <= DBL_EPSILON / 2 * (fabs(d[first - 1]) + fabs(d[first])))) first--;
        if (first == last) {
            last--, sweeps = 0;
            continue;
        }
        if (sweeps++ == MOST_SWEEPS) return 0;
        double half = (d[last - 1] - d[last]) / 2, beside = e[last - 1], root = sqrt(half * half + beside * beside);
        double x = d[first] - (d[last] - beside / (half + (half < 0 ? -root : root)) * beside), z = e[first];
        for (size_t i = first; i < last; i++) {
            double r = sqrt(x * x + z * z), c = r > 0 ? x / r : 1, s = r > 0 ? z / r : 0;
            if (i > first) e[i - 1] = r;
            double turn = s * (d[i + 1] - d[i]) + 2 * c * e[i];
            d[i] += s * turn;
            d[i + 1] -= s * turn;
            e[i] = c * turn - e[i];
            x = e[i];
            if (i + 1 < last) {
                z = s * e[i + 1];
                e[i + 1] *= c;
            }
            double *restrict one = W + i * k, *restrict two = one + k;
            for (size_t j = 0; j < k; j++) {
                double kept = one[j];
                one[j] = c * kept + s * two[j];
                two[j] = c * two[j] - s * kept;
            }
        }
    }
    return 1;
}

INLINE void sort(double *w, double *W, size_t k) {
    for (size_t i = 0; i + 1 < k; i++) {
        size_t least = i;
        for (size_t j = i + 1; j < k; j++) least = w[j] < w[least] ? j : least;
        if (least == i) continue;
        swap(w + i, w + least, 1);
        swap(W + i * k, W + least * k, k);
    }
}

/* Eigenvalues of a symmetric A, in their order, and its eigenvectors in the rows of W; `room` holds k * k + 2 k numbers.
   Of a matrix whose entries fall from corner to corner small eigenvalues are found to more digits if it begins with the
   largest. -> whether they were found */
CLONES static int eigen_of(const double *A, size_t k, double *w, double *W, double *room) {
    double size = largest(A, k * k), *used = room, *e = room + k * k, *v = e + k;
    if (!isfinite(size)) return 0;
    int backwards = fabs(A[k * k - 1]) > fabs(A[0]);
    for (size_t i = 0; i < k * k; i++) used[backwards ? k * k - 1 - i : i] = size > 0 ? A[i] / size : 0;
    tridiagonalise(used, k, w, e, W, v);
    if (!diagonalise(w, e, W, k)) return 0;
    for (size_t i = 0; backwards && i < k; i++)
        for (size_t j = 0; j < k / 2; j++) swap(W + i * k + j, W + i * k + k - 1 - j, 1);
    scale(w, size, k);
    sort(w, W, k);
    return 1;
}

/* Psi'Psi = U'U, in place; every squared pivot must be above its noise. */
INLINE int factor(double *U, const double *noise, size_t k) {
    for (size_t j = 0; j < k; j++) {
        double pivot = U[j * k + j];
        if (!(pivot > noise[j] && pivot > 0 && pivot <= DBL_MAX)) return 0;
        scale(U + j * k + j, 1 / sqrt(pivot), k - j);
        for (size_t i = j + 1; i < k; i++) add(U + i * k + i, -U[j * k + i], U + j * k + i, k - i);
    }
    return 1;
}

/* X = U'^-1 X */
INLINE void solve_transposed(const double *U, double *X, size_t k) {
    for (size_t j = 0; j < k; j++) {
        scale(X + j * k, 1 / U[j * k + j], k);
        for (size_t i = j + 1; i < k; i++) add(X + i * k, -U[j * k + i], X + j * k, k);
    }
}

/* Each row v of V becomes U^-1 v. */
INLINE void solve_rows(const double *U, double *V, size_t k) {
    for (double *v = V; v < V + k * k; v += k)
        for (size_t j = k; j-- > 0;)
            v[j] = (v[j] - dot(U + j * k + j + 1, v + j + 1, k - j - 1)) / U[j * k + j];
}

/* mu and the vectors z, in the rows of V, with M z = mu P z and z'P z = 1; `room` holds 3 k * k + 2 k numbers. */
CLONES static int pencil_of(const double *P, const double *M, const double *noise, size_t k, double *mu, double *V,
                            double *room) {
    double *U = room, *X = U + k * k, *rest = X + k * k;
    memcpy(U, P, k * k * sizeof *U);
    memcpy(X, M, k * k * sizeof *X);
    if (!factor(U, noise, k)) return 0;
    solve_transposed(U, X, k);
    transpose(X, k);
    solve_transposed(U, X, k);
    if (!eigen_of(X, k, mu, V, rest)) return 0;
    solve_rows(U, V, k);
    return 1;
}

/* The inverse of A, which is used up, by elimination with row exchanges (Gauss and Jordan). -> whether it was found */
INLINE int eliminate(double *A, size_t k, double *inverse) {
    memset(inverse, 0, k * k * sizeof *inverse);
    for (size_t i = 0; i < k; i++) inverse[i * k + i] = 1;
    for (size_t j = 0; j < k; j++) {
        size_t best = j;
        for (size_t i = j + 1; i < k; i++) best = fabs(A[i * k + j]) > fabs(A[best * k + j]) ? i : best;
        double pivot = A[best * k + j];
        if (!(fabs(pivot) > 0 && isfinite(pivot))) return 0;
        if (best != j) {
            swap(A + j * k, A + best * k, k);
            swap(inverse + j * k, inverse + best * k, k);
        }
        scale(A + j * k + j, 1 / pivot, k - j);
        scale(inverse + j * k, 1 / pivot, k);
        for (size_t i = 0; i < k; i++) {
            double t = A[i * k + j];
            if (i == j || t == 0) continue;
            add(A + i * k + j, -t, A + j * k + j, k - j);
            add(inverse + i * k, -t, inverse + j * k, k);
        }
    }
    return 1;
}

/* M^-1 of a symmetric M, without what M cannot see; `room` holds 3 k * k + 2 k numbers.
   -> REGULAR or SINGULAR, or 0 if nothing was found */
CLONES static int inverse_of(const double *M, size_t k, double *inverse, double *room) {
    double *scaled = room, *W = scaled + k * k, *rest = W + k * k, size[MOST_ROWS], w[MOST_ROWS];
    for (size_t i = 0; i < k; i++) {
        size[i] = sqrt(largest(M + i * k, k));
        if (!isfinite(size[i])) return 0;
        if (size[i] == 0) size[i] = 1;
    }
    for (size_t i = 0; i < k; i++) /* so that "nearly singular" does not mean "badly scaled" */
        for (size_t j = 0; j < k; j++) scaled[i * k + j] = M[i * k + j] / size[i] / size[j];
    memcpy(rest, scaled, k * k * sizeof *rest);
    int regular = eliminate(rest, k, inverse) && largest(inverse, k * k) < 1 / (64 * DBL_EPSILON);
    if (!regular) {
        if (!eigen_of(scaled, k, w, W, rest)) return 0;
        double seen = pow(DBL_EPSILON, 0.75) * largest(w, k);
        memset(inverse, 0, k * k * sizeof *inverse);
        for (size_t e = 0; e < k; e++)
            for (size_t i = 0; i < k && fabs(w[e]) > seen; i++) add(inverse + i * k, W[e * k + i] / w[e], W + e * k, k);
    }
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j <= i; j++)
            inverse[i * k + j] = inverse[j * k + i] = (inverse[i * k + j] + inverse[j * k + i]) / 2 / size[i] / size[j];
    return regular ? REGULAR : SINGULAR;
}

/* P = R'R by rows of R and a choice of pivots, `order`, until what is left is below `least`. -> the rank of R */
INLINE size_t factor_pivoted(double *R, size_t k, double least, size_t *order) {
    for (size_t j = 0; j < k; j++) order[j] = j;
    for (size_t j = 0; j < k; j++) {
        size_t best = j, kept = order[j];
        for (size_t i = j + 1; i < k; i++) best = R[i * k + i] > R[best * k + best] ? i : best;
        double pivot = R[best * k + best];
        if (!(pivot > least)) return j;
        if (best != j) {
            order[j] = order[best];
            order[best] = kept;
            swap(R + j * k, R + best * k, k);
            for (size_t i = 0; i < k; i++) swap(R + i * k + j, R + i * k + best, 1);
        }
        scale(R + j * k + j, 1 / sqrt(pivot), k - j);
        for (size_t i = j + 1; i < k; i++) {
            add(R + i * k + j + 1, -R[j * k + i], R + j * k + j + 1, k - j - 1);
            R[i * k + j] = 0;
        }
    }
    return k;
}

/* Eigenvalues w of Psi N Psi' from P = Psi'Psi and N, and z in the rows of V so that Psi z are eigenvectors; `room` holds
   6 k * k + 2 k numbers. -> how many there are, the rank of P, or -1 */
CLONES static long within_of(const double *P, const double *N, double least, size_t k, double *w, double *V, double *room) {
    double *R = room, *X = R + k * k, *T = X + k * k, *Z = T + k * k, *rest = Z + k * k, norms[MOST_ROWS];
    size_t order[MOST_ROWS];
    if (!isfinite(largest(P, k * k))) return -1;
    for (size_t i = 0; i < k; i++) norms[i] = P[i * k + i] > 0 ? sqrt(P[i * k + i]) : 1;
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < k; j++) R[i * k + j] = P[i * k + j] / norms[i] / norms[j];
    size_t rank = factor_pivoted(R, k, least * k, order);
    memset(X, 0, rank * k * sizeof *X);
    for (size_t i = 0; i < rank; i++)
        for (size_t j = i; j < k; j++) add(X + i * k, R[i * k + j] * norms[order[j]], N + order[j] * k, k); /* R N */
    for (size_t i = 0; i < rank; i++) {
        for (size_t j = 0; j < k; j++) rest[j] = X[i * k + order[j]] * norms[order[j]];
        for (size_t j = 0; j < rank; j++) T[i * rank + j] = dot(rest + j, R + j * k + j, k - j); /* R N R' */
    }
    if (rank > 0 && !eigen_of(T, rank, w, Z, rest)) return -1;
    for (size_t i = 0; i < rank; i++) memcpy(T + i * rank, R + i * k, rank * sizeof *T);
    solve_rows(T, Z, rank);
    memset(V, 0, k * k * sizeof *V);
    for (size_t i = 0; i < rank; i++)
        for (size_t j = 0; j < rank; j++) V[i * k + order[j]] = Z[i * rank + j] / norms[order[j]];
    return (long)rank;
}
