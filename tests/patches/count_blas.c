/* Preloaded, these stand in for the functions of BLAS and LAPACK that NumPy calls for matrices: they count, and compute
   nothing. */

#include <stdint.h>

unsigned long counted_blas;

#define CBLAS(name)                                                                                                    \
    void scipy_cblas_##name##64_(void) { counted_blas++; }
CBLAS(sgemm)
CBLAS(dgemm)
CBLAS(cgemm)
CBLAS(zgemm)
CBLAS(ssyrk)
CBLAS(dsyrk)
CBLAS(csyrk)
CBLAS(zsyrk)

#define GESV(name)                                                                                                     \
    void scipy_##name##_64_(void *n, void *nrhs, void *a, void *lda, void *ipiv, void *b, void *ldb, int64_t *info) {  \
        counted_blas++;                                                                                                \
        *info = 0;                                                                                                     \
    }
GESV(sgesv)
GESV(dgesv)
GESV(cgesv)
GESV(zgesv)

#define GETRF(name)                                                                                                    \
    void scipy_##name##_64_(void *m, void *n, void *a, void *lda, void *ipiv, int64_t *info) {                         \
        counted_blas++;                                                                                                \
        *info = 1;                                                                                                     \
    }
GETRF(sgetrf)
GETRF(dgetrf)
GETRF(cgetrf)
GETRF(zgetrf)

#define POTRF(name)                                                                                                    \
    void scipy_##name##_64_(void *uplo, void *n, void *a, void *lda, int64_t *info) {                                  \
        counted_blas++;                                                                                                \
        *info = 0;                                                                                                     \
    }
POTRF(spotrf)
POTRF(dpotrf)
POTRF(cpotrf)
POTRF(zpotrf)
