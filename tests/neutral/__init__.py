"""Tests of the neutral core: no machine is touched; CPython runs them (`make test`), and Pyodide (`make pyodide`)."""
