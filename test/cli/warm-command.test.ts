import t from "tap";
import { createWarmCommand, warmRequestOf } from "../../src/cli/warm.js";
import { argumentsOf } from "../../src/config/serve-command.js";

function parse(...argv: readonly string[]) {
  const command = createWarmCommand().exitOverride();
  return command.parse(argv, { from: "user" });
}

t.test("without options everything is asked for, with all workers", async (t) => {
  t.strictSame(warmRequestOf(parse("a.zarr")), {
    ...{ datasets: [], variables: [], ranges: [], stored: false, share: 1, isOwn: undefined },
  });
});

t.test("options may be repeated, and those of a server are taken, too", async (t) => {
  const command = parse(
    ...["x=a.zarr", "--port", "9001", "--cache-dir", "c", "--dataset", "x", "--dataset", "y", "--stored"],
    ...[
      "--variable",
      "t2m",
      "--isel",
      "time=0:2",
      "--sel",
      "lat=30:50",
      "--sel",
      "time=2013",
      "--share",
      "0.25",
    ],
  );
  t.match(warmRequestOf(command), {
    datasets: ["x", "y"],
    variables: ["t2m"],
    ranges: [
      { by: "index", dim: "time", begin: 0, end: 2 },
      { by: "value", dim: "lat", low: "30", high: "50" },
      { by: "value", dim: "time", low: "2013", high: "2013" },
    ],
    stored: true,
    share: 0.25,
  });
  t.strictSame(argumentsOf(command), {
    ...{ locations: ["x=a.zarr"], config: undefined, concat: undefined, stack: undefined, plugins: [] },
    values: { port: "9001", cacheDir: "c" },
  });
});

t.test("an instance is one of the balancer's servers", async (t) => {
  const { isOwn } = warmRequestOf(parse("--instances", "3", "--instance", "2"));
  t.type(isOwn?.("/datasets/air/zarr/t2m/0.0"), "boolean");
});

t.test("each mistake is a line of its own", async (t) => {
  const command = parse(
    ...["--isel", "lat", "--sel", "lat=south:", "--share", "2", "--instance", "2", "--isel", "lat=1:2"],
  );
  t.throws(() => warmRequestOf(command), {
    code: "invalid-config",
    message: [
      '--isel: expected DIM=BEGIN:END such as time=0:100, received "lat"',
      '--sel: expected DIM=LOW:HIGH of numbers or dates such as lat=30:50, received "lat=south:"',
      '--share: expected a number above 0 and up to 1, received "2"',
      "--instance: expected --instances with it, received none",
    ].join("\n"),
  });
  t.throws(() => warmRequestOf(parse("--instances", "3", "--instance", "4")), {
    message: "--instance: expected 1 to 3, received 4",
  });
});

t.test("the help shows ranges and the options of a server that matter", async (t) => {
  const help: string[] = [];
  createWarmCommand()
    .configureOutput({ writeOut: (text) => void help.push(text) })
    .outputHelp();
  t.match(help.join(""), /--isel <dim=range>.*--cache-size.*Examples:/s);
  t.notMatch(help.join(""), "--port");
});
