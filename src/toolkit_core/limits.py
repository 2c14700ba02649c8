"""Every number of the toolkit, its unit in its name, its reason or source beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# --- calls -------------------------------------------------------------------------------------------

PROGRESS_INTERVAL_SECONDS: Final = 0.1
"""Ten reports a second are what a person can follow."""

PROGRESS_TEXT_CHARS: Final = 65_536
"""Waiting progress text is joined up to this; a listener that wants all reads the result."""

NAME_PATTERN: Final = r"[a-zA-Z0-9_-]{1,64}"
"""What every provider accepts as a function name."""

DESCRIPTION_MAX_CHARS: Final = 1024
"""OpenAI's function calling and LlamaIndex's to_openai_tool refuse longer ones."""

CHECKED_TEXT_CHARS: Final = 1_048_576
"""Of a result's text, looked at for lone surrogates before the event loop is let in: a millisecond."""

CLEANUP_SECONDS: Final = 10.0
"""How long clean-up after a cancelled or failed call may take before it is left and logged."""

# --- files -------------------------------------------------------------------------------------------

STOP_SECONDS: Final = 10.0
"""How long a custom tool's body may take to stop once its time is over or its call was cancelled."""

NAME_MAX_BYTES: Final = 255
"""NAME_MAX of Linux, macOS and their usual filesystems (limits.h)."""

PATH_MAX_BYTES: Final = 4096
"""PATH_MAX of Linux (limits.h); a longer string is refused before the kernel sees it."""

LINK_HOPS: Final = 40
"""Links that Linux follows in one look-up before ELOOP (path_resolution(7))."""

OPEN_ATTEMPTS: Final = 16
"""How often a path that others keep swapping is looked up anew; each attempt is some ten microseconds."""

FILE_BLOCK_BYTES: Final = 262_144
"""One block of a scan: long enough for full speed, and decoding it holds the GIL for less than a millisecond."""

WRITE_BLOCK_BYTES: Final = 8_388_608
"""A cancelled write stops after at most this much; the system call runs without the GIL."""

RACY_CLOCK_NS: Final = 20_000_000
"""A file changed this shortly before it was looked at may change again within the same tick of the filesystem's
clock (10 ms at CONFIG_HZ=100; none from Linux 6.13 on; FAT's 2 s are not covered), so its bytes decide."""

LISTING_ENTRIES: Final = 100
"""Entries shown of a folder that was named as a file: enough to find the right name."""

SUGGESTION_ENTRIES: Final = 5_000
"""Names compared with one that was not found; some 50 ms of a worker thread at most."""

FILE_LOCK_SECONDS: Final = 2.0
"""How long a write waits for another process's lock on the file. Then it goes on: the lock may be a program's own,
held for as long as that runs, and a write that collides is found out anyway."""

FILE_LOCK_POLL_SECONDS: Final = 0.002
"""flock(2) cannot be waited for with a deadline."""

SWEPT_FOLDERS: Final = 1_024
"""Folders remembered as swept of what killed writes left; past it they are swept once more."""

READ_LINES: Final = 2_000
"""Lines that read_file shows unless asked otherwise; the output window cuts what a model sees further."""

READ_LINE_CHARS: Final = 2_000
"""Characters shown of one line; longer ones are data or minified code, and the cut says how to read on."""

READ_OUTPUT_BYTES: Final = 262_144
"""Text that one read gives out; some 65,000 tokens, more than any window passes on."""

READ_SCAN_BYTES: Final = 536_870_912
"""Bytes that one read scans to find its lines (512 MiB): about a second."""

READ_COUNT_AHEAD_BYTES: Final = 1_048_576
"""How far past its slice a read goes on counting lines to tell the total: under a millisecond."""

BINARY_PROBE_BYTES: Final = 8_192
"""A NUL in this much from the start means binary, as git and grep judge it."""

HASHED_FILE_BYTES: Final = 67_108_864
"""Largest file whose SHA-256 is kept at a read (64 MiB, some 50 ms); of larger ones only the times count."""

EDIT_FILE_BYTES: Final = 67_108_864
"""Largest file that edit_file takes and makes (64 MiB)."""

EDIT_OCCURRENCES: Final = 250_000
"""Places that replace_all changes at most; each costs some 300 bytes while the pieces are in memory."""

EDIT_SEARCH_BYTES: Final = 1_048_576
"""One step of a search in memory: finding holds the GIL, at most a millisecond a step."""

DIFF_BYTES: Final = 1_048_576
"""Diff text kept of one edit; whole hunks, then a line that says how many are missing."""

DIFF_CONTEXT_LINES: Final = 3
"""As diff -u has it."""

DIFF_CONTEXT_LINE_BYTES: Final = 65_536
"""A longer line beside a change is no context that anybody reads; the hunk has less of it then."""

DIFF_ALIGNED_LINES: Final = 400
"""Changed blocks up to this long are aligned line by line; aligning costs the square of it."""

NEAR_MATCH_SECONDS: Final = 0.3
"""Time spent on finding what an old text that does not match may have meant."""

NEAR_MATCH_BYTES: Final = 4_194_304
"""Bytes of a file looked at for a near match; larger files hold data, which nobody retypes."""

NEAR_MATCH_OLD_CHARS: Final = 20_000
"""Longest old text that is compared loosely; a longer one is no slip of a few characters."""

IMAGE_MAX_BYTES: Final = 5_242_880
"""Largest image that is handed over: Anthropic's API refuses more than 5 MB an image."""

IMAGE_MAX_PIXELS_A_SIDE: Final = 8_000
"""Anthropic's API refuses images of more than 8,000 pixels a side."""

DOCUMENT_MAX_BYTES: Final = 67_108_864
"""Largest document or notebook that is read (64 MiB)."""

DOCUMENT_TEXT_BYTES: Final = 4_194_304
"""Text taken from one document (4 MiB, over a thousand pages); a PDF can repeat a page's text without end."""

DOCUMENT_SECONDS: Final = 30.0
"""How long a document may take to parse: some 300 pages; then its process is killed."""

DOCUMENT_MEMORY_BYTES: Final = 2_147_483_648
"""Address space of the parsing process: a small PDF can inflate to gigabytes."""

READ_RECORDS: Final = 10_000
"""Files whose reading is remembered over all sessions; each is some 300 bytes."""

IN_PLACE_ATTEMPTS: Final = 8
"""How often a write follows a target that others keep moving before it gives up."""


# --- langchain ---------------------------------------------------------------------------------------

ARTIFACT_LEDGER_CHARS: Final = 30_000
"""An artifact's string longer than what the window shows whole is left to the ledger's entry."""

ARTIFACT_STRING_CHARS: Final = 1_048_576
"""Artifacts are checkpointed at every step; a capped command stream (1 MiB) still fits whole."""

SHOWN_ARGUMENT_DEPTH: Final = 100
"""Arguments nested deeper are not shown to callbacks: str() of them ends in RecursionError near 1,000."""

SHOWN_INTEGER_BITS: Final = 13_000
"""str() refuses integers past 4,300 digits (sys.get_int_max_str_digits), some 14,284 bits."""

OPEN_ASKS_KEPT: Final = 1_000
"""Tasks whose order of questions is remembered for the replay; each is a few hundred bytes."""

# --- the output window -------------------------------------------------------------------------------

WINDOW_CHARS: Final = 30_000
"""About 7,500 tokens: one result must not crowd out the conversation."""

WINDOW_HEAD_CHARS: Final = 12_000
WINDOW_TAIL_CHARS: Final = 18_000
"""Two fifths from the start and three from the end: of a build or a test run the end says how it went."""

WINDOW_LINE_CHARS: Final = 2_000
"""A longer line is data or minified code; its start tells which."""

RECALL_CHARS: Final = 29_000
"""A recalled part with its note stays within the window, so that it is never cut a second time."""

LEDGER_PARTIAL_CHARS: Final = 65_536
"""Output of a cancelled call that is kept for the ledger, a stream: its end, which says where it stood."""

CATALOG_SESSIONS: Final = 1_000
"""Sessions whose loaded tools are remembered; the one used longest ago goes first."""

NAMES_SHOWN: Final = 10
NAMES_SHOWN_CHARS: Final = 100
"""Unknown names that an error repeats, and how much of each: a model has sent them, it need not read them again."""

# --- search ------------------------------------------------------------------------------------------

SEARCH_BUDGET_SECONDS: Final = 20.0
"""What glob and grep may take in all; a model waits no longer for a list, and partial rows are shown then."""

GLOB_LIMIT: Final = 1000
"""Entries that glob shows unless asked for more: a screenful of any tree, some 40 KB."""

GREP_LIMIT: Final = 200
"""Matches that grep shows unless asked for more: some 20 KB, about what the output window keeps."""

SEARCH_LIMIT_MAX: Final = 100_000
"""The most entries or matches that may be asked for: 60 MB of rows at 500 characters."""

GREP_CONTEXT_MAX_LINES: Final = 100
"""Lines of context on either side; more is reading the file."""

GREP_ROW_CHARS: Final = 500
"""A row is cut here: source lines are shorter, minified ones are not worth more."""

GREP_PATTERN_MAX_CHARS: Final = 16_384
"""One argument of a process may have 128 KiB (MAX_ARG_STRLEN of Linux); a character has up to four bytes."""

GLOB_PATTERN_MAX_CHARS: Final = 4096
"""As long as a path may be."""

GLOB_ALTERNATIVES: Final = 256
"""Patterns that braces may stand for: `{a,b}` eight times over; each is matched for every name."""

SEARCH_COUNT_ENTRIES: Final = 10_000
"""Entries that are looked at to count the ignored files that an empty grep left out; past it "at least"."""

SEARCH_COUNT_SECONDS: Final = 2.0
"""What counting may add to an empty grep: as long as searching some gigabytes; past it "at least"."""

GLOB_COUNT_ENTRIES: Final = 200_000
"""Entries that are looked at to explain an empty glob: a second or so, which the answer is worth."""

IGNORE_FILE_MAX_BYTES: Final = 1_048_576
"""What is read of one .gitignore; the largest ones of large repositories have some 50 KiB."""

SEARCH_SORT_SLACK_ROWS: Final = 2000
"""Rows read past the limit before the parallel search is given up for one in order of path, which costs more."""

SEARCH_ROWS_A_TURN: Final = 500
"""Rows put into words before the event loop is let in: a millisecond or two."""

SEARCH_STDERR_BYTES: Final = 65_536
"""What is kept of the engine's complaints; each line is counted, one is shown."""

SEARCH_OPEN_FOLDERS: Final = 64
"""Folder descriptors that one walk holds; deeper folders are opened part by part from the top."""

REGEX_WORKER_FILE_BYTES: Final = 67_108_864
"""The largest file that a pattern across lines reads whole in the worker (64 MiB)."""

# --- command line ------------------------------------------------------------------------------------

DOCTOR_PROBE_SECONDS: Final = 10
"""A program that does not tell its version within this is as good as broken; a cold start on a busy machine takes 3."""

DEMO_MAX_TURNS: Final = 120
"""Turns of the longest job: 40 repairs of two calls each, and the reading around them."""

DEMO_MAX_REPAIRS: Final = 40
"""Repairs that the scripted model tries before it gives up; each costs a test run."""

DEMO_MAX_DEPTH: Final = 2
"""How many calls deep, counted from the failing test, the scripted model looks for the bug."""

DEMO_TEST_SECONDS: Final = 120
"""For the first run of a project's tests, whose duration nobody knows yet."""

DEMO_RETRY_SECONDS: Final = 10
"""For a run after a repair, beyond five times what the first run took: a wrong repair may loop for ever."""

DEMO_CHECK_SECONDS: Final = 600
"""For the command's own run of the tests at the end; the sample's take less than a second."""

DEMO_READ_LINES: Final = 200
"""Lines around a place in a long file that the scripted model reads: a function of any decent length."""

DEMO_RESULT_LINES: Final = 14
"""Lines of a result that the transcript shows; more hides the story."""

DEMO_LINE_CHARS: Final = 160
"""Characters of a line that the transcript shows: two rows of an 80-column terminal."""

# --- web ---------------------------------------------------------------------------------------------

WEB_TOTAL_SECONDS: Final = 20.0
"""A whole fetch or render, all hops: what a person waits for a page."""

WEB_BODY_MAX_BYTES: Final = 5 * 1024 * 1024
"""Decoded body: the longest specifications fit (the HTML standard in one page does not, and is cut)."""

WEB_PAGE_CHARS: Final = 29_000
"""One answer of web_fetch and browse: with its header it fits the output window, so no middle is omitted."""

WEB_EXCERPT_CHARS: Final = 2_000
"""The body of an error answer: its reason stands at the start."""

WEB_REDIRECTS: Final = 10
"""Fewer than the 20 of the Fetch standard; honest chains have three or four."""

WEB_URL_MAX_CHARS: Final = 8_192
"""What servers take as a request line (Apache LimitRequestLine 8190, nginx 8k)."""

WEB_ADDRESSES_TRIED: Final = 8
"""Answers of the resolver that are connected to, in turn; all of them are judged."""

WEB_CONNECT_STAGGER_SECONDS: Final = 0.25
"""RFC 8305, section 5: the delay before the next address is tried beside the last."""

WEB_RESOLVER_THREADS: Final = 16
"""getaddrinfo cannot be stopped: so many may hang at once before further look-ups wait."""

WEB_READ_BYTES: Final = 16 * 1024
"""One read of a connection: what h11 parses at once keeps the event loop for a few milliseconds at worst."""

WEB_INFLATE_STEP_BYTES: Final = 256 * 1024
"""Decompressed at once before the event loop gets its turn: about a millisecond."""

WEB_YIELD_SECONDS: Final = 0.005
"""After so long of parsing without waiting the event loop gets its turn."""

WEB_SNIFF_BYTES: Final = 8 * 1024
"""Looked at for magic bytes and NUL, as read_file does."""

WEB_META_BYTES: Final = 4 * 1024
"""Searched for a meta charset. The HTML standard looks at 1,024 bytes; pages put scripts before it."""

WEB_DETECT_BYTES: Final = 64 * 1024
"""Sample for the statistical detection of a charset: more does not change its mind."""

MARKDOWN_IN_THREAD_CHARS: Final = 128 * 1024
"""HTML up to this is converted in a thread: its worst cases take half a second. More goes to a process."""

MARKDOWN_WORKER_BYTES: Final = 2 * 1024**3
"""Address space of the converting process; 5 MiB of honest HTML take 300 MiB."""

MARKDOWN_CELLS: Final = 200_000
"""Columns times rows that a thread may write: a table is squared by one wide row."""

BROWSE_WAIT_SECONDS: Final = 4.0
BROWSE_WAIT_MAX_SECONDS: Final = 10.0
"""Time that a page's scripts get once it has loaded; half of the whole call at most."""

BROWSE_RESERVE_SECONDS: Final = 3.0
"""Kept of the call's time to read the DOM of a page that does not finish loading."""

BROWSE_AT_ONCE: Final = 4
"""Browsers that run beside each other; each takes some 250 MB and a core while it starts."""

BROWSE_STDERR_CHARS: Final = 2_000
"""The end of what a browser that failed wrote."""

BROWSE_DOM_SLICE_CHARS: Final = 256 * 1024
"""The DOM is read in pieces: parsing one message of the DevTools protocol stays under two milliseconds."""

BROWSE_MESSAGE_MAX_BYTES: Final = 8 * 1024 * 1024
"""A DevTools message larger than any that we ask for: the page made it, and the browser is given up."""

PROXY_CONNECTIONS: Final = 256
"""Open at once through the browser's proxy; Chromium itself keeps 32 a proxy."""

PROXY_HEAD_MAX_BYTES: Final = 64 * 1024
"""A request's or an answer's head; Chromium refuses larger ones at 256 KiB."""

PROXY_HEAD_SECONDS: Final = 20.0
"""Until a connection to the proxy has sent its request: the whole of a call."""

PROXY_TOTAL_BYTES: Final = 200 * 1024 * 1024
"""Received for one page: more is a page that fills memory."""

SEARCH_PROVIDER_SECONDS: Final = 15.0
"""One provider's answer; then the next is asked."""

SEARCH_ROWS_MAX: Final = 20
"""The most that Brave and Tavily give for one query (their documentation)."""

SEARCH_BODY_MAX_BYTES: Final = 2 * 1024 * 1024
"""A provider's answer; twenty rows take some 50 KB."""

# --- llamaindex --------------------------------------------------------------------------------------

ANSWER_TIMEOUT_SECONDS: Final = 2_000.0
"""How long a question waits for a person: the default of LlamaIndex's own wait_for_event."""

LOADED_SESSIONS_KEPT: Final = 1_000
"""Sessions whose loaded tools a retriever remembers beside the workflow's context; some 100 bytes each."""

STREAMED_PIECE_CHARS: Final = 12
"""A scripted model streams its text in pieces of about a word, as real ones do."""

STREAMED_PIECES: Final = 50
"""At most about so many: every piece carries all text so far, which for a long text would be quadratic."""

# --- display -----------------------------------------------------------------------------------------

DISPLAY_ROWS: Final = 200
"""Rows of a table in a notebook; more makes pages that nobody scrolls and browsers that stutter."""

DISPLAY_LINES: Final = 400
"""Lines of a text or a diff in a notebook."""

DISPLAY_TEXT_CHARS: Final = 2_000
"""Characters of one line or cell, as read_file cuts a line."""

DISPLAY_IMAGE_BASE64_CHARS: Final = 7_000_000
"""An image as read_file gives it at most: 5 MB, a third more in base64."""

DISPLAY_IMAGES: Final = 8
"""Images shown of one result: a notebook keeps each in its file."""

DISPLAY_PART_CHARS: Final = 100_000
"""Characters of one text, diff or table in a notebook, as far as its lines and rows alone allow more."""

DISPLAY_PROGRESS_LINES: Final = 12
"""The end of a call's output while it runs; it is drawn anew at each report."""

DISPLAY_PROGRESS_CHARS: Final = 50_000
"""Output of a running call that is kept to show its last lines."""

ASK_POLL_SECONDS: Final = 0.05
"""How often a kernel that does not do so itself is told to look for a click; a person does not feel it."""

# --- the OS sandbox ----------------------------------------------------------------------------------

SANDBOX_TMP_BYTES: Final = 1024**3
"""Private /tmp of one confined command: memory of this machine, so bounded; a compiler's needs fit."""

SANDBOX_VAR_TMP_BYTES: Final = 256 * 1024**2
"""Private /var/tmp, rarely used."""

SANDBOX_RUN_BYTES: Final = 16 * 1024**2
"""Private /run: pid files at most."""

SANDBOX_SHM_BYTES: Final = 1024**3
"""Private /dev/shm; without a size the kernel gives half of all memory (tmpfs(5))."""

SANDBOX_PROBE_SECONDS: Final = 10.0
"""A start takes 50 ms; a loaded machine takes seconds, a hanging one is reported."""

SANDBOX_END_SECONDS: Final = 5.0
"""Wait for the dead sandbox's last process; 26 ms were measured."""

SANDBOX_LOCK_SECONDS: Final = 10.0
"""Wait for the record of a workspace; held for a millisecond, longer while a planted tree is copied away."""

SANDBOX_STATUS_MAX_BYTES: Final = 64 * 1024
"""bubblewrap reports some 300 bytes."""

SANDBOX_DIAGNOSE_WITHIN_SECONDS: Final = 5.0
"""A run that ended this early without having started its command is repeated with `true` to learn why."""

QUARANTINE_COPY_BYTES: Final = 64 * 1024**2
"""Copied where the quarantine lies on another filesystem; configuration files are small, sparse ones endless."""

QUARANTINE_COPY_ENTRIES: Final = 10_000
"""Entries copied with them."""

TRUST_SCAN_ENTRIES: Final = 5_000
"""Files of trust inputs that are looked at for links before a command is approved unseen; more are not approved."""

# --- commands and processes --------------------------------------------------------------------------

COMMAND_TIMEOUT_SECONDS: Final = 120.0
"""Enough for most builds and test runs; a hung command costs two minutes."""

COMMAND_TIMEOUT_MAX_SECONDS: Final = 600.0
"""What one call may hold an agent up; longer work is a background process's."""

COMMAND_GRACE_SECONDS: Final = 2.0
"""Between TERM and KILL: time to remove a lock file, not to go on working."""

COMMAND_OUTPUT_MAX_BYTES: Final = 1_048_576
"""Kept of each stream, half from the start and half from the end; the output window bounds what a model reads."""

COMMAND_MAX_BYTES: Final = 131_071
"""Linux takes no longer single argument: MAX_ARG_STRLEN, 32 pages, with its final NUL (execve(2))."""

COMMAND_DRAIN_SECONDS: Final = 1.0
"""After the whole tree is dead a pipe stays open only if it was given to a stranger; nobody waits for that."""

COMMAND_START_SECONDS: Final = 30.0
"""A start takes 2 ms; a supervisor that has not answered by then is stopped or broken, even on a loaded machine."""

COMMAND_ANSWER_SECONDS: Final = 4.0
"""Past the grace, for the answer to an order to end; a keeper that is silent longer was stopped."""

COMMAND_LOOK_SECONDS: Final = 1.0
"""Past timeout and grace, how often it is looked whether the keeper was stopped: it would never answer."""

COMMAND_END_MARGIN_SECONDS: Final = 15.0
"""Past timeout and grace: the kill loop's own 5 s and a loaded machine."""

SUPERVISOR_IDLE_SECONDS: Final = 0.5
"""Commands that follow each other share a supervisor; between an agent's turns no helper process is left."""

SUPERVISOR_STOP_SECONDS: Final = 5.0
"""Ending an idle supervisor takes milliseconds."""

FLOOD_BYTES: Final = 2_097_152
"""Twice what is kept: from here on the stream is dropped in the middle, and a thread of its own empties it."""

FLOOD_PAUSE_SECONDS: Final = 0.0001
"""After a small read of a flood: the writer's small pieces gather instead of waking the reader for each."""

PIPE_BYTES: Final = 1_048_576
"""A flood's pipe: the largest that an unprivileged process may ask for (/proc/sys/fs/pipe-max-size)."""

READ_BYTES: Final = 262_144
"""One read: longer ones stay neither in the cache nor under the event loop's 0.1 ms."""

SCRATCH_SESSIONS_MAX: Final = 64
"""Scratch folders at once; the longest unused session's is removed first."""

CONTROL_SEQUENCE_MAX_CHARS: Final = 4096
"""A longer one is no control sequence but output that looks like its start; also bounds the pattern's work."""

TEXT_BLOCK_CHARS: Final = 65_536
"""Output is cleaned in blocks: one call of `re` holds every other thread up, here for about a millisecond."""

PROCESSES_MAX: Final = 16
"""Background processes of one session at once: servers and watchers, not a job queue."""

PROCESSES_ENDED_KEPT: Final = 16
"""Ended processes of one session whose output can still be read."""

PROCESS_OUTPUT_MAX_BYTES: Final = 1_048_576
"""New output kept for the next read, the newest; what is older is counted and dropped."""

PROCESS_WAIT_MAX_SECONDS: Final = 60.0
"""Longest wait of one read; a longer one hides from the person that the agent only waits."""

PROCESS_WRITE_MAX_BYTES: Final = 65_536
"""One write to a process's input; more belongs in a file."""

PROCESS_WRITE_SECONDS: Final = 5.0
"""How long a write waits for a process that does not read its input."""

PROCESS_GATHER_SECONDS: Final = 0.05
"""After the first bytes of an answer, the time in which the rest of its lines come."""

PROCESS_SETTLE_SECONDS: Final = 0.2
"""After a start or a write, the time in which an answer usually comes; it is returned with the call."""

ENVIRONMENT_ALLOWED: Final = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TERM",
        "COLORTERM",
        "NO_COLOR",
        "TZ",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "SYSTEMROOT",
        "WINDIR",
        "COMSPEC",
        "PATHEXT",
        "USERPROFILE",
        "HOMEDRIVE",
        "HOMEPATH",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "PROGRAMFILES(X86)",
        "PROCESSOR_ARCHITECTURE",
        "NUMBER_OF_PROCESSORS",
        "OS",
    ]
)
"""Variables that commands inherit. None holds a credential: provider keys in a tool's environment are the
commonest leak. PATH and the toolchains' homes make the machine's programs work, the second line is Windows'."""

ENVIRONMENT_ALLOWED_PREFIXES: Final = ("LC_", "XDG_")
"""Locale and the desktop's folder names."""

# --- stores ------------------------------------------------------------------------------------------

SQLITE_BUSY_SECONDS: Final = 5.0
"""How long a writer waits for another process's transaction, which takes milliseconds."""

LEDGER_MAX_BYTES: Final = 1024 * 1024 * 1024
"""Content a ledger keeps; a day of work of one agent is some tens of MiB."""

LEDGER_PAGE_ENTRIES: Final = 1_000
"""Rows read in one transaction, so that a reader of a long ledger never keeps writers waiting."""

REDACTED_MIN_CHARS: Final = 6
"""A shorter value of a variable named KEY or TOKEN is hardly a secret and would blank ordinary text."""

BACKEND_BINARY_MAX_BYTES: Final = 512_000
"""deepagents' published sandbox tests expect binary previews to end here."""

BACKEND_PAGE_MAX_BYTES: Final = 1_048_576
"""One page of a read; deepagents itself cuts what its model sees far below."""

BACKEND_SCAN_MAX_BYTES: Final = 536_870_912
"""How far a page is looked for, as read_file scans (512 MiB)."""

BACKEND_FILE_MAX_BYTES: Final = 268_435_456
"""Downloads are held in memory whole; 256 MiB is more than any checkpointed artifact."""

BACKEND_RESULTS_MAX: Final = 10_000
"""Rows of one glob or grep; deepagents asks for 1,000 matches at most by default."""

# --- memory ------------------------------------------------------------------------------------------

MEMORY_FILE_BYTES: Final = 1024 * 1024
"""A memory file is notes; a larger one is no longer read by anybody."""

MEMORY_HEAD_LINES: Final = 200
"""Lines of the index that go into the system prompt of every run."""

# --- report ------------------------------------------------------------------------------------------

REPORT_STRING_CHARS: Final = 60_000
"""One text on the report's page, its start and its end; a browser lays this much out in a blink."""

REPORT_CALL_CHARS: Final = 240_000
"""Content of one call: what the model read, the whole beside it, arguments and data at their longest."""

REPORT_LEAST_CHARS: Final = 1_000
"""Content that a call keeps even on a page that is full."""

REPORT_PAGE_CHARS: Final = 100_000_000
"""Content of a page, images included: what Chromium opens from disk within seconds."""

REPORT_PAGE_SHARE: Final = 400
"""A call takes at most this part of what is left of the page, so that the last call of a long ledger is on it too."""

REPORT_CALLS: Final = 50_000
"""Calls on a page; beyond it nobody reads a list, and `--session` makes pages that are read."""

REPORT_SUMMARY_CHARS: Final = 160
"""A call's line in the list, cut there by any screen."""

REPORT_KEY_CHARS: Final = 200
"""A key of arguments or data; a longer one is no name."""

REPORT_DEPTH: Final = 40
"""Levels of nested data on the page; real results stay below 20."""


# --- sandbox clients ---------------------------------------------------------------------------------

CLIENT_PROBE_SECONDS: Final = 30.0
"""One look at a path of a plane, or one rename there: milliseconds of work behind a slow network."""

CLIENT_FILE_MAX_BYTES: Final = 268_435_456
"""Largest file that a plane without partial reads hands over whole (256 MiB): it is held in memory."""

CLIENT_BLOCK_BYTES: Final = 1_048_576
"""One partial read of a plane: enough that the round trip costs less than the bytes."""

CLIENT_RANGED_FILE_BYTES: Final = 4_194_304
"""A larger file is read in parts where the plane can; a smaller one is cheaper whole."""

CLIENT_INLINE_BYTES: Final = 262_144
"""Work on less than this is done on the event loop: a thread would cost more."""

CLIENT_LISTING_MAX_BYTES: Final = 67_108_864
"""A listing of a plane's tree (64 MiB, about a million paths); what is beyond it was not searched, which is said."""

CLIENT_SCRIPT_BYTES: Final = 60_000
"""Names that go into a command itself; Linux takes 131,072 bytes in one argument (execve(2), MAX_ARG_STRLEN)."""

CLIENT_PROCESS_READ_BYTES: Final = 262_144
"""One look at a process's log there: in hexadecimal (three times that) it fits the 1 MiB that clients keep."""

CLIENT_PROCESS_WRITE_BYTES: Final = 12_000
"""One piece of text for a process there, four characters a byte in the command, as CLIENT_SCRIPT_BYTES allows."""

PLANE_DEFAULT_ROOT: Final = "/workspace"
"""Where workspaces are laid out and in-memory files lie, unless said otherwise."""

MANIFEST_ENTRIES_MAX: Final = 10_000
"""Entries of a manifest; more belong in a folder or a repository."""

MANIFEST_PATH_MAX_CHARS: Final = 262_144
"""A path of a manifest as it is written, with its separators; the parts themselves follow the system's limits."""

GIT_CLONE_SECONDS: Final = 600.0
"""Cloning one repository: the longest that a command may take."""

SSH_CONNECT_SECONDS: Final = 15.0
"""TCP, key exchange and login over a slow network; a host that needs longer is down."""

SSH_KEEPALIVE_SECONDS: Final = 15.0
"""Between signs of life; three that are missed end the connection, so a dead network is an error within a minute."""

SSH_SESSIONS_PER_CONNECTION: Final = 7
"""Channels on one connection: sshd allows 10 (MaxSessions), and file transfer and kills need some as well."""

SSH_CONNECTIONS_MAX: Final = 4
"""Connections of one sandbox: room for 28 commands at once; more wait for their turn."""

SSH_CONNECT_ATTEMPTS: Final = 3
"""A connection that is cut while it is made is made again: no command has been sent yet."""

KEEPER_NOISE_BYTES: Final = 65_536
"""What a login shell may print before the command starts."""

KEEPER_KILL_SECONDS: Final = 5.0
"""How long the far side may take to confirm a kill before a second channel is tried."""

DOCKER_START_SECONDS: Final = 300.0
"""Making a container, its image pulled if need be."""

DOCKER_PIDS_MAX: Final = 1024
"""Processes of one container: a parallel build, and no fork bomb."""

# --- what a composition may change -------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """The numbers that `default_tools(limits=...)` passes on; the reasons stand with the constants above.

    Example:
        >>> tools = default_tools(".", limits=Limits(command_timeout_seconds=30))
    """

    read_line_chars: int = READ_LINE_CHARS
    read_output_bytes: int = READ_OUTPUT_BYTES
    read_scan_bytes: int = READ_SCAN_BYTES
    image_bytes: int = IMAGE_MAX_BYTES
    edit_file_bytes: int = EDIT_FILE_BYTES
    glob_limit: int = GLOB_LIMIT
    grep_limit: int = GREP_LIMIT
    search_budget_seconds: float = SEARCH_BUDGET_SECONDS
    command_timeout_seconds: float = COMMAND_TIMEOUT_SECONDS
    command_timeout_max_seconds: float = COMMAND_TIMEOUT_MAX_SECONDS
    command_output_bytes: int = COMMAND_OUTPUT_MAX_BYTES
    web_seconds: float = WEB_TOTAL_SECONDS
    web_bytes: int = WEB_BODY_MAX_BYTES
