"""An inverse problem for SciPy's users: a signal from the intensities of its projections.

f(x) = mean((|a_i.x|^2 - b_i)^2) / 4 has a saddle at 0, where f is concave in most directions, and the run starts beside
it. The function is NumPy's, the loop is SciPy's `minimize`; signedstep's methods are one argument.
"""

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import signedstep


def intensities(n: int, m: int, seed: int):
    """A function (value, gradient) and the signal to be found, up to its sign."""
    random = np.random.default_rng(seed)
    signal, A = random.standard_normal(n), random.standard_normal((m, n))
    b = (A @ signal) ** 2

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        projections = A @ x
        excess = projections**2 - b
        return float(np.mean(excess**2)) / 4, A.T @ (excess * projections) / m

    return fun, signal


def main(n: int = 60, m: int = 600, seed: int = 0) -> dict[str, OptimizeResult]:
    fun, signal = intensities(n, m, seed)
    x0 = 1e-3 * np.random.default_rng(seed + 1).standard_normal(n)
    methods = {
        "BFGS": "BFGS",
        "L-BFGS-B": "L-BFGS-B",
        "lsr1/wolfe+-": signedstep.method("lsr1/wolfe+-"),
        "auto": signedstep.method("auto"),
    }
    results = {}
    for name, method in methods.items():
        result = results[name] = minimize(fun, x0, jac=True, method=method)
        off = min(np.linalg.norm(result.x - sign * signal) for sign in (-1, 1)) / np.linalg.norm(signal)
        backwards = (result.history.alpha < 0).sum() if "history" in result else 0
        print(
            f"{name:13} {result.nfev:4} evaluations, f = {result.fun:.0e}, error of the signal {off:.0e}, "
            f"{backwards} steps backwards"
        )
    return results


if __name__ == "__main__":
    main()
