"""Every number of the toolkit, its unit in its name, its reason or source beside it."""

from __future__ import annotations

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

CLEANUP_SECONDS: Final = 10.0
"""How long clean-up after a cancelled or failed call may take before it is left and logged."""

# --- files -------------------------------------------------------------------------------------------

NAME_MAX_BYTES: Final = 255
"""NAME_MAX of Linux, macOS and their usual filesystems (limits.h)."""

PATH_MAX_BYTES: Final = 4096
"""PATH_MAX of Linux (limits.h); a longer string is refused before the kernel sees it."""

LINK_HOPS: Final = 40
"""Links that Linux follows in one look-up before ELOOP (path_resolution(7))."""

OPEN_ATTEMPTS: Final = 16
"""How often a path that others keep swapping is looked up anew; each attempt is some ten microseconds."""


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

SEARCH_COUNT_ENTRIES: Final = 50_000
"""Entries that are looked at to say what an empty answer left out: half a second at most; past it "at least"."""

IGNORE_FILE_MAX_BYTES: Final = 1_048_576
"""What is read of one .gitignore; the largest ones of large repositories have some 50 KiB."""

SEARCH_SORT_SLACK_ROWS: Final = 2000
"""Rows read past the limit before the parallel search is given up for one in order of path, which costs more."""

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

STREAMED_PIECE_CHARS: Final = 12
"""A scripted model streams its text in pieces of about a word, as real ones do."""

# --- display -----------------------------------------------------------------------------------------

DISPLAY_ROWS: Final = 200
"""Rows of a table in a notebook; more makes pages that nobody scrolls and browsers that stutter."""

DISPLAY_LINES: Final = 400
"""Lines of a text or a diff in a notebook."""

DISPLAY_TEXT_CHARS: Final = 2_000
"""Characters of one line or cell, as read_file cuts a line."""

DISPLAY_IMAGE_BASE64_CHARS: Final = 7_000_000
"""An image as read_file gives it at most: 5 MB, a third more in base64."""
