#!/usr/bin/env -S node --max-semi-space-size=2

// The first line: V8 takes up to 48 MB for objects that live for a request, and gives nothing back; 6 MB were as fast. It names no variable,
// such as MALLOC_ARENA_MAX: what pnpm makes of that cannot be run.

import nodeModule = require("node:module");

// CommonJS, because loading ES modules starts the threads that wait for files, and their number counts only before: 4
// by default, of which one store that hangs could take all. See `open/README.md`.
process.env.UV_THREADPOOL_SIZE ??= "16";

// Node.js 22.1 and newer keep what V8 compiles, which saves a sixth of a start. Not in the default directory, the system's for temporary
// files: what other users may write there would be run here. `NODE_COMPILE_CACHE` and `NODE_DISABLE_COMPILE_CACHE` are obeyed.
const { HOME, XDG_CACHE_HOME = HOME && `${HOME}/.cache` } = process.env;
const { enableCompileCache } = nodeModule as { enableCompileCache?: (directory: string) => unknown };
if (XDG_CACHE_HOME?.startsWith("/")) enableCompileCache?.(`${XDG_CACHE_HOME}/zpublish/compiled`);

// Before anything of the server is loaded: what is read later need not be read again, and is no reason to end.
if (!["warm", "inspect", "select", "references"].includes(process.argv[2] ?? ""))
  process.on("SIGHUP", () => undefined);
void import("./main.js");
