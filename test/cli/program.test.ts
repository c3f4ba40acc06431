import t from "tap";
import { flagOf, OPTION_KEYS } from "../../src/config/options.js";
import { packageVersion } from "../../src/observe/versions.js";
import { PROGRAM, runProgram, runScript } from "../support/servers/run-program.js";

t.jobs = 2;

t.test("--version and --help answer on standard output", async (t) => {
  t.strictSame(await runProgram(["--version"]), { code: 0, stdout: `${packageVersion}\n`, stderr: "" });
  const help = await runProgram(["--help"]);
  t.equal(help.code, 0);
  t.match(help.stdout, /serve \[options\]/);
  t.match(help.stdout, /inspect \[options\]/);
  const serve = await runProgram(["serve", "--help"]);
  t.equal(serve.code, 0);
  for (const key of OPTION_KEYS) t.ok(serve.stdout.includes(flagOf(key).slice(2)), `help says ${key}`);
  t.notMatch(serve.stdout, "--no-skip-invalid");
});

t.test("without a command the help goes to standard error, exit code 2", async (t) => {
  const { code, stdout, stderr } = await runProgram([]);
  t.equal(code, 2);
  t.equal(stdout, "");
  t.match(stderr, /^Usage: zpublish /);
});

const MISTAKES: readonly (readonly [readonly string[], string])[] = [
  [["publish"], "unknown command 'publish'"],
  [["serve", "--prot", "1"], "unknown option '--prot' (Did you mean --port?)"],
  [["serve", "--port", "x", "a"], '--port: expected an integer from 0 to 65535, received "x"'],
  [["serve", "--port"], "option '--port <port>' argument missing"],
  [["serve"], "nothing to serve: expected [ID=]LOCATION, or datasets or collections in the file of --config"],
  [["serve", "a", "x/a.zarr"], 'command line (x/a.zarr): dataset id "a" is used already by command line (a)'],
  [["inspect"], "missing required argument 'location'"],
  [["inspect", "a", "b"], "too many arguments for 'inspect'. Expected 1 argument but got 2."],
  [["inspect", "a", "--jsn"], "unknown option '--jsn' (Did you mean --json?)"],
];

for (const [args, line] of MISTAKES) {
  t.test(`one line and exit code 2: zpublish ${args.join(" ")}`, async (t) => {
    t.strictSame(await runProgram(args), { code: 2, stdout: "", stderr: `zpublish: ${line}\n` });
  });
}

t.test("each mistake of a file and of the environment is a line of its own", async (t) => {
  const cwd = t.testdir({ "config.json": '{"port": -1, "hots": "x", "datasets": {"a": {"location": 1}}}' });
  const { code, stderr } = await runProgram(["serve", "--config", "config.json"], { cwd });
  t.equal(code, 2);
  t.match(stderr, /^zpublish: config\.json: unknown key "hots"; expected one of host, port, [^\n]*\n$/);
  const ofVariable = await runProgram(["serve", "a"], { env: { ZPUBLISH_PORT: "no", ZPUBLISH_HOTS: "x" } });
  t.equal(ofVariable.code, 2);
  t.match(
    ofVariable.stderr,
    /^zpublish: ZPUBLISH_HOTS: unknown variable; [^\n]*\nzpublish: ZPUBLISH_PORT: expected an integer from 0 to 65535, received "no"\n$/,
  );
});

t.test(
  "without WebAssembly SIMD the program says so in one line and ends with exit code 1",
  { skip: process.arch === "x64" ? false : "only V8 for x64 can be told to do without" },
  async (t) => {
    const store = t.testdir({ ".zgroup": '{"zarr_format":2}' });
    for (const processes of ["1", "2"]) {
      const args = [PROGRAM, "serve", store, "--port", "0", "--no-cache", "--processes", processes];
      const run = runScript("--no-enable-sse4-1", args);
      t.equal(await run.ended, 1);
      t.match(run.stderr(), /^zpublish: expected WebAssembly with SIMD, [^\n]*\n$/);
    }
  },
);
