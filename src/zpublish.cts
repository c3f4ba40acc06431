#!/usr/bin/env -S node --max-semi-space-size=2

// The first line: V8 takes up to 48 MB for objects that live for a request, and gives nothing back; 6 MB were as fast.

// CommonJS, because loading ES modules starts the threads that wait for files, and their number counts only before: 4
// by default, of which one store that hangs could take all. See `source/README.md`.
process.env.UV_THREADPOOL_SIZE ??= "16";

// Before anything of the server is loaded: what is read later need not be read again, and is no reason to end.
if (process.argv[2] === "serve") process.on("SIGHUP", () => undefined);
void import("./main.js");
