// A module worker: loads Pyodide and the wheels from where the page lies, and runs two tools over ports in memory.
const { loadPyodide } = await import("./pyodide/pyodide.mjs");
const wheels = await (await fetch("./wheels.json")).json();
const py = await loadPyodide({ indexURL: new URL("./pyodide/", self.location).href });
const purelib = py.runPython("import sysconfig; sysconfig.get_paths()['purelib']");
for (const name of wheels) {
  const wheel = await (await fetch(`./wheels/${name}`)).arrayBuffer();
  py.unpackArchive(wheel, "wheel", { extractDir: purelib });
}
const said = await py.runPythonAsync(`
import importlib, json
importlib.invalidate_caches()
from toolkit_core import ToolSet, edit_file_tool, grep_tool, read_file_tool, ReadRecord
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.testing.search import InMemorySearch

files = MemoryFiles({"a.py": "one = 1\\r\\n"})
record = ReadRecord()
search = InMemorySearch({"a.py": b"one = 1\\r\\n"})
tools = ToolSet([read_file_tool(files, record=record), edit_file_tool(files, record=record), grep_tool(search)])
await tools["read_file"](path="a.py")
edited = await tools["edit_file"](path="a.py", old_text="one", new_text="two")
found = await tools["grep"](pattern="on.")
shown = edited._repr_mimebundle_()["text/html"] + found._repr_mimebundle_()["text/html"]
json.dumps({"file": files.contents["a.py"].decode(), "diff": edited.data["diff"], "rows": found.data["rows"], "shown": shown})
`);
self.postMessage(said);
