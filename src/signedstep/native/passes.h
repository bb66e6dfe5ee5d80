/* The passes over long vectors, for numbers of type `real`: included once for float and once for double.

   Rows meet the few new vectors four at a time, so that each of their numbers is loaded once, and by strips, so that the
   vectors stay in a near cache. The hardware follows a row well but not the jump to the next, so what comes AHEAD is
   fetched by hand. Sums run over SPAN columns in `real`, one for each lane, and go on in double. */

#define LANES (64 / sizeof(real))
#define STRIP (32768 / sizeof(real))
#define AHEAD (2048 / sizeof(real))
#define SPAN (4 * AHEAD)

typedef real NAME(pack) __attribute__((vector_size(64)));

INLINE NAME(pack) NAME(load)(const real *from) {
    NAME(pack) loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

/* What to fetch while columns j, j + 1, ... of a strip are read: the same row AHEAD of them, beyond its end the next. */
INLINE uintptr_t NAME(beyond)(const real *row, const real *next, size_t j, size_t n) {
    return j + AHEAD < n ? (uintptr_t)row + (j + AHEAD) * sizeof(real) : (uintptr_t)next + (j + AHEAD - n) * sizeof(real);
}

/* out[v * step + u] += the products of rows u with vectors v; `next` are the rows that will be read after these. */
INLINE void NAME(meet)(const real *const *rows, size_t R, const real *const *next, const real *const *V, size_t count,
                       size_t n, double *out, size_t step) {
    double totals[4][MOST_VECTORS][LANES] = {0};
    size_t j = 0;
    while (j + LANES <= n) {
        size_t stop = j + SPAN < n ? j + SPAN : n;
        NAME(pack) sums[4][MOST_VECTORS];
        for (size_t u = 0; u < R; u++)
            for (size_t v = 0; v < count; v++) sums[u][v] = (NAME(pack)){0};
        while (j + LANES <= stop) {
            size_t end = j + AHEAD < stop ? j + AHEAD : stop;
            uintptr_t fetched[4];
            for (size_t u = 0; u < R; u++) fetched[u] = NAME(beyond)(rows[u], next[u], j, n);
            for (size_t line = 0; j + LANES <= end; j += LANES, line += 64) {
                NAME(pack) loaded[4];
                for (size_t u = 0; u < R; u++) {
                    __builtin_prefetch((const void *)(fetched[u] + line));
                    loaded[u] = NAME(load)(rows[u] + j);
                }
                for (size_t v = 0; v < count; v++) {
                    NAME(pack) with = NAME(load)(V[v] + j);
                    for (size_t u = 0; u < R; u++) sums[u][v] += loaded[u] * with;
                }
            }
        }
        for (size_t u = 0; u < R; u++)
            for (size_t v = 0; v < count; v++)
                for (size_t lane = 0; lane < LANES; lane++) totals[u][v][lane] += sums[u][v][lane];
    }
    for (size_t u = 0; u < R; u++)
        for (size_t v = 0; v < count; v++) {
            double sum = 0;
            for (size_t lane = 0; lane < LANES; lane++) sum += totals[u][v][lane];
            for (size_t i = j; i < n; i++) sum += (double)rows[u][i] * V[v][i];
            out[v * step + u] += sum;
        }
}

INLINE void NAME(meet_groups)(const real *const *rows, size_t r, const real *const *V, size_t count, size_t n,
                              size_t skip, double *out) {
    const real *group[4], *next[4];
    for (size_t i = 0; i < r;) {
        size_t R = r - i >= 4 ? 4 : r - i >= 2 ? 2 : 1;
        for (size_t u = 0; u < R; u++) {
            group[u] = rows[i + u] + skip;
            next[u] = (i + R + u < r ? rows[i + R + u] : rows[u % r] + n) + skip;
        }
        if (R == 4) NAME(meet)(group, 4, next, V, count, n, out + i, r);
        if (R == 2) NAME(meet)(group, 2, next, V, count, n, out + i, r);
        if (R == 1) NAME(meet)(group, 1, next, V, count, n, out + i, r);
        i += R;
    }
}

/* All rows, from column `skip` on, with all vectors; how many vectors there are is known when it is compiled. */
INLINE void NAME(meet_all)(const real *const *rows, size_t r, const real *const *V, size_t count, size_t n,
                           size_t skip, double *out) {
    switch (count) {
        case 1: NAME(meet_groups)(rows, r, V, 1, n, skip, out); break;
        case 2: NAME(meet_groups)(rows, r, V, 2, n, skip, out); break;
        case 3: NAME(meet_groups)(rows, r, V, 3, n, skip, out); break;
        case 4: NAME(meet_groups)(rows, r, V, 4, n, skip, out); break;
    }
}

/* The products of some columns: V A' of the first `count` vectors, then V V' of all where it is asked for. */
CLONES static void NAME(products)(const struct products *task, size_t first, size_t last, double *out) {
    const real *const *rows = (const real *const *)task->rows;
    real made[MOST_DIFFERENCES][STRIP] __attribute__((aligned(64)));
    const real *V[MOST_VECTORS];
    for (size_t at = first; at < last; at += STRIP) {
        size_t n = last - at < STRIP ? last - at : STRIP;
        for (size_t v = 0, differences = 0; v < task->vectors; v++) {
            const real *plus = (const real *)task->plus[v] + at, *minus = (const real *)task->minus[v];
            V[v] = plus;
            if (minus != NULL) {
                real *difference = made[differences++];
                for (size_t j = 0; j < n; j++) difference[j] = plus[j] - minus[at + j];
                V[v] = difference;
            }
        }
        NAME(meet_all)(rows, task->r, V, task->count, n, at, out);
        if (task->own) NAME(meet_all)(V, task->vectors, V, task->vectors, n, 0, out + task->count * task->r);
    }
}

/* out += c[0] rows[0] + ... for a group of rows. */
INLINE void NAME(add)(const real *const *rows, size_t R, const real *const *next, const double *c, size_t n, real *out) {
    size_t j = 0;
    while (j + LANES <= n) {
        size_t end = j + AHEAD < n ? j + AHEAD : n;
        uintptr_t fetched[4];
        for (size_t u = 0; u < R; u++) fetched[u] = NAME(beyond)(rows[u], next[u], j, n);
        for (size_t line = 0; j + LANES <= end; j += LANES, line += 64) {
            NAME(pack) sum = NAME(load)(out + j);
            for (size_t u = 0; u < R; u++) {
                __builtin_prefetch((const void *)(fetched[u] + line));
                sum += (real)c[u] * NAME(load)(rows[u] + j);
            }
            memcpy(out + j, &sum, sizeof sum);
        }
    }
    for (; j < n; j++)
        for (size_t u = 0; u < R; u++) out[j] += (real)c[u] * rows[u][j];
}

/* Some columns of c[0] A[0] + ... + scale v, and while they are near their products with v and with themselves. */
CLONES static void NAME(combine)(const struct combination *task, size_t first, size_t last, double *sums) {
    const real *const *rows = (const real *const *)task->rows;
    const real *group[4], *next[4];
    size_t r = task->r;
    for (size_t at = first; at < last; at += STRIP) {
        size_t n = last - at < STRIP ? last - at : STRIP;
        const real *v = (const real *)task->v + at;
        real *out = (real *)task->out + at, scale = (real)task->scale;
        for (size_t j = 0; j < n; j++) out[j] = scale * v[j];
        for (size_t i = 0; i < r;) {
            size_t R = r - i >= 4 ? 4 : 1;
            for (size_t u = 0; u < R; u++) {
                group[u] = rows[i + u] + at;
                next[u] = i + R + u < r ? rows[i + R + u] + at : rows[u % r] + at + n;
            }
            if (R == 4) NAME(add)(group, 4, next, task->c + i, n, out);
            if (R == 1) NAME(add)(group, 1, next, task->c + i, n, out);
            i += R;
        }
        const real *both[2] = {v, out};
        NAME(meet_all)(both, 2, (const real *const[1]){out}, 1, n, 0, sums);
    }
}

/* Some columns of scale (plus - minus), for each difference. */
CLONES static void NAME(differences)(const struct differences *task, size_t first, size_t last) {
    for (size_t i = 0; i < task->count; i++) {
        const real *plus = task->plus[i], *minus = task->minus[i];
        real *out = task->out[i], scale = (real)task->scale;
        for (size_t j = first; j < last; j++) out[j] = (plus[j] - minus[j]) * scale;
    }
}

#undef LANES
#undef STRIP
#undef AHEAD
#undef SPAN
