import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import {
  errorsOf,
  makeTemporaryDirectory,
  runCommand,
  runPython,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { type ClientName, clientMissing, clientMissingIn } from "../support/clients/require-client.js";

t.setTimeout(600_000);

const FILES = ["types", "classic", "groups", "map"] as const;

/** Commands that print what they read of a dataset, `$1`; `$2` is a folder for their files. */
interface Program {
  readonly name: string;
  readonly needs: readonly [ClientName, ...ClientName[]];
  readonly script: string;
  /** Files besides the script, below `$2`. */
  readonly files?: Readonly<Record<string, string>>;
  /** Default: `classic`. */
  readonly dataset?: (typeof FILES)[number];
  /** Lines that depend on the name of the dataset, or on the order of its variables. */
  readonly ignored?: RegExp;
}

/** Prints the values of a NetCDF file with all digits, without its header. */
const DUMP = "ncdump -p 9,17";
const NUMBERS = "v_i1 v_i2 v_i4 v_f4 v_f8";

const PROGRAMS: readonly Program[] = [
  {
    ...{ name: "ncdump", needs: ["ncdump"] },
    script: `for v in ${NUMBERS} name time lat lon; do ${DUMP} -v $v "$1" | sed '1,/^data:/d'; done`,
  },
  {
    ...{ name: "NCO", needs: ["ncdump", "nco"] },
    script: `
      ncks -O -C -v v_f4,v_i2,name -d lat,1,5,2 -d time,1,2 "$1" $2/piece.nc && ${DUMP} $2/piece.nc | sed '1,/^data:/d'
      ncra -O -C -v ${NUMBERS.replaceAll(" ", ",")} "$1" $2/mean.nc
      for v in ${NUMBERS}; do ${DUMP} -v $v $2/mean.nc | sed '1,/^data:/d'; done`,
  },
  {
    ...{ name: "CDO", needs: ["cdo"] },
    script: `for v in ${NUMBERS}; do
      cdo -s outputtab,name,date,time,lat,lon,value -selname,$v "$1"
      cdo -s outputf,%.9g -timmean -sellonlatbox,20,200,-60,60 -selname,$v "$1"
    done`,
  },
  {
    ...{ name: "GrADS", needs: ["grads"] },
    script: 'cd $2 && grads -blc "run read.gs $1"',
    files: {
      "read.gs": `function main(args)
'sdfopen 'args
'set gxout print'
'set prnopts %.9g 12 1'
'set lat -75 75'
'set lon 0 330'
'set t 2'
'd v_f4'
say result
'd v_i2'
say result
'set lat 25'
'set lon 60'
'set t 1 4'
'd v_f8'
say result
'quit'
`,
    },
    ignored: /Opening|SDF file|LON set|LAT set|Time values|SDF|nc\b/,
  },
  {
    ...{ name: "Ferret", needs: ["ferret"] },
    script: `cd $2 && sed "s|SOURCE|$1|" read.jnl > now.jnl && FER_DIR=/usr FER_DSETS=/usr/share/ferret-vis \\
      FER_GO=/usr/share/ferret-vis/jnls FER_DATA=. FER_DESCR=. FER_GRIDS=. \\
      FER_EXTERNAL_FUNCTIONS=/usr/lib/ferret-vis/external_functions ferret_c -nojnl -unmapped -script now.jnl`,
    files: {
      "read.jnl": `set data "SOURCE"
${NUMBERS.split(" ")
  .map((name) => `list/norowhead/nohead/width=200/precision=9/l=1:4 ${name}`)
  .join("\n")}
exit
`,
    },
    ignored: /FILE(?:NAME|PATH)|SUBSET|http|nc$/,
  },
  {
    ...{ name: "Octave", needs: ["octave"] },
    script: 'octave-cli --no-gui $2/read.m "$1" 2>/dev/null',
    files: {
      "read.m": `pkg load netcdf
source = argv(){1};
for name = {"${NUMBERS.replaceAll(" ", '","')}","name","time","lat","lon"}
  x = ncread(source, name{1});
  printf("%s %s\\n", name{1}, mat2str(size(x)));
  if ischar(x) disp(x'), else printf("%.17g ", x), end
end
printf("%.17g ", ncread(source, "v_f4", [2 3 2], [3 2 1], [2 1 1]));
`,
    },
  },
  {
    ...{ name: "R", needs: ["ncdf4"] },
    script: 'Rscript $2/read.R "$1"',
    files: {
      "read.R": `suppressMessages(library(ncdf4))
data <- nc_open(commandArgs(TRUE)[1])
for (name in c("${NUMBERS.replaceAll(" ", '","')}","name","time","lat","lon")) {
  x <- ncvar_get(data, name)
  cat(name, dim(x), format(as.vector(x), digits = 17), "\\n")
}
cat(format(ncvar_get(data, "v_f4", start = c(2, 3, 2), count = c(3, 2, 1)), digits = 17), "\\n")
`,
    },
  },
  {
    ...{ name: "ncview", needs: ["ncview", "xvfb", "imagemagick"], dataset: "map" },
    // Waits for a window with a map: more colours than those of the buttons. How many pixels have each is compared.
    script: `xvfb-run --auto-servernum --server-args="-screen 0 1000x800x24" sh -c '
      ncview "$1" >/dev/null 2>&1 & viewer=$!
      for attempt in $(seq 60); do
        sleep 0.5
        import -window root $2/screen.png && [ "$(identify -format %k $2/screen.png)" -gt 40 ] && break
      done
      convert $2/screen.png -format %c histogram:info: | sort
      kill $viewer' sh "$1" $2`,
    // Colours of texts, some of which are about the file.
    ignored: /#(?:000000|FFFFFF|4682B4)/,
  },
];

interface Service {
  readonly directory: string;
  file(name: string): string;
  url(name: string): string;
}

/** Writes the files, serves them while `check` runs, and checks that the service failed nowhere. */
async function withService(t: Test, check: (service: Service) => Promise<void>): Promise<void> {
  const directory = await makeTemporaryDirectory();
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await runPython("write_dap_files.py", [directory]);
  const file = (name: string) => join(directory, `${name}.nc`);
  const datasets = Object.fromEntries(FILES.map((name) => [name, { location: file(name) }]));
  const server = await serveDatasets(t, { directory: join(directory, "server"), datasets });
  await check({ directory, file, url: (name) => `${server.url}/datasets/${name}/opendap/${name}.nc` });
  t.same(errorsOf(server), []);
  await server.stop();
}

t.test("programs of 25 years read what they read from the file", (t) =>
  withService(t, async (service) => {
    for (const { name, needs, script, files = {}, dataset = "classic", ignored } of PROGRAMS)
      await t.test(name, { skip: clientMissing(...needs) }, async (t) => {
        const read = async (source: string) => {
          const folder = join(
            service.directory,
            `${name}-${source === service.url(dataset) ? "url" : "file"}`,
          );
          await mkdir(folder);
          for (const [path, content] of Object.entries(files)) await writeFile(join(folder, path), content);
          const { status, stdout, stderr } = await runCommand("sh", ["-c", script, "sh", source, folder]);
          t.equal(status, 0, `${source}: ${stderr.slice(-500)}`);
          return stdout.split("\n").filter((line) => ignored?.test(line) !== true);
        };
        const expected = await read(service.file(dataset));
        const received = await read(service.url(dataset));
        t.ok(expected.join("").length > 300, `${expected.length} lines are compared`);
        t.strictSame(received, expected);
      });
  }),
);

/** Numbers and texts of each variable as libdap prints them: `Int16 v[x = 2] = {1, 2};`. */
function libdapValues(output: string): Map<string, string[]> {
  const found = output.matchAll(/^\w+ (\w+)(?:\[[^\]]*\])* = (.*);$/gm);
  return new Map(Array.from(found, ([, name = "", text = ""]) => [name, text.match(/[^\s{},"]+/g) ?? []]));
}

t.test("libdap reads DAP2 and DAP4", { skip: clientMissing("getdap", "netcdf4") }, (t) =>
  withService(t, async ({ file, url }) => {
    const print = `import json, sys, netCDF4
d = netCDF4.Dataset(sys.argv[1]); d.set_auto_maskandscale(False)
print(json.dumps({n: ["%.17g" % x for x in v[...].ravel()] for n, v in d.variables.items() if n != "name"}))`;
    const { stdout } = await runCommand("/usr/bin/python3", ["-c", print, file("classic")]);
    const expected = Object.entries(JSON.parse(stdout) as Record<string, string[]>);
    for (const [program, ...args] of [
      ["getdap", "-D", url("classic")],
      // libdap 3.20 reads a checksum behind each variable, and does not ask for it.
      ["getdap4", "-D", `${url("classic")}?dap4.checksum=true`],
    ] as const) {
      const values = libdapValues((await runCommand(program, args)).stdout);
      for (const [name, numbers] of expected) {
        const read = values.get(name)?.map(Number) ?? [];
        const isNear = (each: string, index: number) =>
          Math.abs(read[index]! - Number(each)) <= 1e-5 * Math.abs(Number(each));
        t.ok(read.length === numbers.length && numbers.every(isNear), `${program}: ${name}`);
      }
    }
  }),
);

/** What DAP2 cannot say, as a client finds it. */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  netcdf4: ["types.nc inexact missing", "groups.nc a/deep/k missing"],
  xarray: ["types.nc inexact missing"],
  pydap: ["types.nc inexact missing", "groups.nc a/deep/k missing"],
  "xarray-pydap": ["types.nc inexact missing"],
};

/** Compares the files with what a client reads, and returns how many variables it compared. */
async function compare(
  t: Test,
  { file, url }: Service,
  client: string,
  generation: Generation,
): Promise<number> {
  const jobs = FILES.map((name) => ({ client, file: file(name), url: url(name) }));
  const output = await runPython("compare_dap.py", [], JSON.stringify(jobs), generation);
  const lines = output.trim().split("\n");
  const findings = lines.slice(0, -1).map((line) => JSON.parse(line).slice(1).join(" "));
  t.strictSame(findings, LEFT_OUT[client] ?? [], `${client} of ${generation}`);
  return Number(lines.at(-1));
}

for (const generation of GENERATIONS)
  t.test(
    `netCDF-C and xarray read every value (${generation})`,
    { skip: clientMissing("netcdf4") || clientMissingIn(generation, "netcdf4", "xarray") },
    (t) =>
      withService(t, async (service) => {
        for (const client of ["netcdf4", "netcdf4-dap4", "xarray"])
          t.ok((await compare(t, service, client, generation)) > 35, client);
      }),
  );

// pydap is in no distribution: PYTHONPATH has its source where it is tested.
if (process.env.ZPUBLISH_TEST_PYDAP === "1")
  t.test("pydap reads every value", (t) =>
    withService(t, async (service) => {
      for (const client of ["pydap", "pydap-dap4", "xarray-pydap"])
        t.ok((await compare(t, service, client, "system")) > 35, client);
    }),
  );
