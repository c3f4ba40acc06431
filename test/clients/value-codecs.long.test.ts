import t, { type Test } from "tap";
import { GENERATIONS, type Generation } from "../support/clients/client-generation.js";
import { runPython } from "../support/clients/fixtures.js";
import { clientMissingIn } from "../support/clients/require-client.js";
import {
  COLUMNS,
  type EncodedArray,
  exactValues,
  ROWS,
  serveEncoded,
} from "../support/datasets/value-codec-store.js";

t.setTimeout(600_000);

const items = (first: number, step: number) =>
  Array.from({ length: ROWS * COLUMNS }, (_, index) => BigInt(first + index * step));
const floats = { type: "f4", fillValue: Number.NaN, isSharded: false } as const;
const doubles = { ...floats, type: "f8" } as const;

/** Packed ones first. */
const arrays: Readonly<Record<string, EncodedArray>> = {
  halves: { ...floats, encoded: "i2", scale: 2, offset: 0.5, mark: -32_768n, items: items(-32_768, 128) },
  tens: { ...floats, encoded: "u2", scale: 0.1, offset: 5, mark: 0n, items: items(0, 128), isSharded: true },
  small: {
    ...doubles,
    encoded: "i1",
    scale: 4,
    offset: 0,
    fillValue: 0,
    items: items(0, 1).map((item) => BigInt.asIntN(8, item)),
  },
  wide: {
    ...doubles,
    encoded: "i4",
    scale: 1024,
    offset: 273.15,
    mark: -1n,
    items: items(-(2 ** 31), 2 ** 23),
  },
  reflectance: {
    ...floats,
    encoded: "u2",
    scale: 10_000,
    offset: -0.1,
    mark: 0n,
    items: items(0, 128),
    isSharded: true,
  },
  double: { ...doubles, encoded: "i2", scale: 100, offset: 273.15, mark: -1n, items: items(-32_768, 127) },
  rounded: {
    ...floats,
    encoded: "i4",
    scale: 3,
    offset: 0,
    fillValue: 0,
    items: items(-(2 ** 31), 2 ** 23 - 1),
  },
};
const PACKED = ["halves", "tens", "small", "wide"];

for (const client of ["xarray", "gdal"] as const) {
  for (const generation of GENERATIONS) {
    const skip = clientMissingIn(generation, client);
    t.test(
      `${client} decodes scale_offset and cast_value as the registry says (${generation})`,
      { skip },
      (t) => check(t, client, generation),
    );
  }
}

async function check(t: Test, client: "xarray" | "gdal", generation: Generation): Promise<void> {
  const { url, json } = await serveEncoded(t, arrays);
  for (const name of Object.keys(arrays)) {
    const document = (await json(`/datasets/d/zarr/${name}/.zarray`)) as { dtype: string };
    t.equal(document.dtype[1] !== "f", PACKED.includes(name), `${name} has ${document.dtype}`);
  }
  const values = Object.fromEntries(
    Object.entries(arrays).map(([name, array]) => {
      const bytes = Buffer.from(new Float64Array(exactValues(array)).buffer);
      return [name, bytes.toString("base64")];
    }),
  );
  // xarray 2023 knows v2 only.
  const formats = client === "xarray" && generation === "trixie" ? [2, 3] : [2];
  for (const format of formats) {
    const store = `${url}/datasets/d/${format === 2 ? "zarr" : "zarr3"}`;
    const job = JSON.stringify({ client, url: store, format, arrays: values });
    t.same(JSON.parse(await runPython("read_value_codecs.py", [], job, generation)), [], store);
  }
}
