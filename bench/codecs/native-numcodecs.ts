import { PYTHON } from "../children.js";
import { type CodecProcess, startCodecProcess } from "./codec-subjects.js";

/**
 * numcodecs as zarr-python calls it, on one thread. Loops and clock are in Python, so that what is timed is the codec: a
 * call costs a few µs, of the hundreds that a chunk takes. Answers as `CodecJob` says.
 */
const SCRIPT = `
import json, sys, time
import numpy, numcodecs
from numcodecs import blosc
from numcodecs.compat import ensure_contiguous_ndarray

blosc.use_threads = False
blosc.set_nthreads(1)

def read(files, dtype):
    return [numpy.fromfile(file, dtype) for file in files]

def plain(result):
    return ensure_contiguous_ndarray(result).reshape(-1).view("u1")

def rotate(run, chunks, first, seconds):
    clock = time.perf_counter
    count = 0
    began = clock()
    end = began + seconds
    while True:
        run(chunks[(first + count) % len(chunks)])
        count += 1
        now = clock()
        if now >= end:
            return count, now - began

def encode(codec, job):
    for chunk, output in zip(read(job["inputs"], job["dtype"]), job["outputs"]):
        plain(codec.encode(chunk)).tofile(output)
    return {"chunks": len(job["inputs"]), "seconds": 0, "isView": False}

def check(codec, job):
    for file, chunk, expected in zip(job["inputs"], read(job["inputs"], "u1"), read(job["expected"], "u1")):
        if not numpy.array_equal(plain(codec.decode(chunk)), expected):
            return {"error": "the decoded bytes are not the ones that were encoded"}
    return {"chunks": len(job["inputs"]), "seconds": 0, "isView": False}

def measure(codec, job):
    chunks = read(job["inputs"], job["dtype"] if job["operation"] == "encode" else "u1")
    run = getattr(codec, job["operation"])
    is_view = bool(numpy.may_share_memory(plain(run(chunks[0])), chunks[0]))
    rotate(run, chunks, job["first"], job["warmUpSeconds"])
    count, seconds = rotate(run, chunks, job["first"], job["seconds"])
    return {"chunks": count, "seconds": seconds, "isView": is_view}

def transcode(codec, job):
    to = numcodecs.get_codec(job["to"])
    dtype = job["dtype"]
    def run(chunk):
        return to.encode(numpy.frombuffer(codec.decode(chunk), dtype))
    chunks = read(job["inputs"], "u1")
    for chunk in chunks[:16]:
        if not numpy.array_equal(plain(to.decode(run(chunk))), plain(codec.decode(chunk))):
            return {"error": "a transcoded chunk does not decode to what it was made of"}
    clock = time.perf_counter
    began = clock()
    if job["isReading"]:
        for file in job["inputs"]:
            with open(file, "rb") as opened:
                run(opened.read())
    else:
        for chunk in chunks:
            run(chunk)
    return {"chunks": len(chunks), "seconds": clock() - began, "isView": False}

def answer(job):
    try:
        codec = numcodecs.get_codec(job["codec"])
    except ValueError as error:
        return {"missing": str(error)}
    try:
        return {"encode": encode, "check": check, "time": measure, "transcode": transcode}[job["job"]](codec, job)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}

print("ready", numcodecs.__version__, "with c-blosc", blosc.VERSION_STRING, flush=True)
for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
`;

/** @throws Error where Python or numcodecs is not installed. */
export function startNativeNumcodecs(): Promise<CodecProcess> {
  return startCodecProcess(PYTHON, ["-c", SCRIPT]);
}
