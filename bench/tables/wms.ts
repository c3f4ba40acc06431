import { type BenchStore, openLayerStore } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { withZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import { fetchBody } from "../subjects/check-answers.js";

/** Variables of the dataset: many, or few, of which the first answer shows what a fresh server takes. */
const SIZES = { full: 1_000, small: 20, tiny: 20 } as const;
/** Requests after the first one. */
const LATER = 40;
const MAX_MS = 100;
const VERSIONS = ["1.3.0", "1.1.1"] as const;

/** Capabilities of a dataset with many layers. */
export const wms: BenchTable = {
  title: "capabilities of many variables by WMS: the first answer of a fresh server, and later ones",
  async *contests(context) {
    const count = SIZES[context.size];
    context.onProgress(0, "making data");
    const store = await openLayerStore(count, context.parent);
    yield {
      contestants: VERSIONS.flatMap((version) =>
        perBuild(context, version, (build) => measure(store, count, version, build, context)),
      ),
      compared: "later, ms",
      rounds: ["first, ms"],
      aims: VERSIONS.flatMap((of) => [
        { of, figure: "first, ms", most: MAX_MS },
        { of, figure: "later, ms", most: MAX_MS },
      ]),
      notes: [
        `${count.toLocaleString("en-US")} variables of four dimensions on one grid, in a local Zarr store. Layers of each answer are counted, and their names, times and levels compared. Later answers: the median of ${LATER}, one after the other, uncompressed.`,
      ],
    };
  },
};

function measure(
  store: BenchStore,
  count: number,
  version: (typeof VERSIONS)[number],
  build: Build,
  context: BenchContext,
): Promise<Figures> {
  const scratch = context.freshFolder("server");
  const settings = { build, datasets: { [store.id]: store.directory }, scratch };
  return withZpublish(settings, async ({ baseUrl }) => {
    const path = `/datasets/${store.id}/wms?service=WMS&version=${version}&request=GetCapabilities`;
    // Connects, and answers from nothing that WMS needs.
    await fetchBody(baseUrl, "/datasets");
    const ms: number[] = [];
    let byteLength = 0;
    for (let request = 0; request <= LATER; request++) {
      const began = performance.now();
      const body = await fetchBody(baseUrl, path);
      ms.push(performance.now() - began);
      byteLength = body.byteLength;
      if (request === 0 || request === LATER) checkLayers(body.toString(), count);
    }
    return { "first, ms": ms[0], "later, ms": median(ms.slice(1)), MB: byteLength / 1e6 };
  });
}

/** @throws Error if layers, times or levels are others than those of the store */
function checkLayers(text: string, count: number): void {
  const layers = text.split('<Layer queryable="1">').slice(1);
  const wrong = layers.filter(
    (layer) => !layer.includes("/2020-04-01T00:00:00Z/PT6H<") || !layer.includes(",100,50<"),
  );
  const names = new Set(layers.map((layer) => /^<Name>(v\d+)<\/Name>/.exec(layer)?.[1]));
  if (layers.length !== count || wrong.length > 0 || names.size !== count || names.has(undefined))
    throw new Error(
      `expected ${count} layers with times and levels, received ${layers.length}, ${wrong[0] ?? ""}`,
    );
}
