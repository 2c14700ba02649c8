// Runs pytest in Pyodide: node --experimental-wasm-jspi run.mjs PYODIDE_FOLDER REPOSITORY WHEEL...
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, repository, ...wheels] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const py = await loadPyodide({ indexURL: `${folder}/`, stdout: (line) => console.log(line), stderr: (line) => console.log(line) });
const purelib = py.runPython("import sysconfig; sysconfig.get_paths()['purelib']");
for (const wheel of wheels) py.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel", { extractDir: purelib });

for (const part of ["neutral", "pyodide/inside"]) {
  py.FS.mkdirTree(`/repository/tests/${part}`);
  py.mountNodeFS(`/repository/tests/${part}`, `${repository}/tests/${part}`);
}
const outcome = await py.runPythonAsync(`
import importlib, os, sys

os.chdir("/repository")
sys.path.insert(0, "/repository")
sys.dont_write_bytecode = True
importlib.invalidate_caches()
import pytest

FLAGS = ["-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--capture=no",
         "-c", "/dev/null", "--rootdir", "/repository", "--tb=short"]


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            setattr(self, report.outcome, getattr(self, report.outcome) + 1)


def run(*paths):
    counts = Counts()
    status = int(pytest.main([*FLAGS, *paths], plugins=[counts]))
    return f"{status} {counts.passed} {counts.failed} {counts.skipped}"


tests = run("tests/neutral", "tests/pyodide/inside/without_the_host.py")
canary = run("-p", "tests.neutral.conftest", "tests/pyodide/inside/canary.py")
f"{sys.version.split()[0]}; tests: {tests}; canary: {canary}"
`);
console.log(`outcome: ${outcome}`);
process.exit(0);
