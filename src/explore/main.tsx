import { effect } from "@preact/signals-core";
import { render } from "preact";
import { ExplorerPage } from "./page/app.js";
import { ExploreModel } from "./page/model.js";
import { formatViewHash, parseViewHash } from "./page/view-hash.js";
import { WorkerClient } from "./page/worker-client.js";
import "./page/explore.css";

/** Least milliseconds between two changes of the address: browsers refuse more than some per second. */
const INTERVAL_MS = 300;

/** Keeps the page's address and the view the same: a new variable is a step of the browser's history, other changes are not. */
function keepAddress(model: ExploreModel): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let variable: string | undefined;
  let written = "";

  function readAddress(): void {
    const hash = location.hash.replace(/^#/, "");
    if (hash === written) return;
    written = hash;
    const { view, problems } = parseViewHash(hash);
    variable = view.variable;
    model.addressProblems.value = problems;
    model.view.value = view;
  }

  function write(hash: string, isNewVariable: boolean): void {
    if (hash === written) return;
    written = hash;
    writtenAt = performance.now();
    const url = `${location.pathname}${location.search}${hash === "" ? "" : `#${hash}`}`;
    if (isNewVariable) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  }

  readAddress();
  addEventListener("hashchange", readAddress);
  addEventListener("popstate", readAddress);
  effect(() => {
    const view = model.view.value;
    const hash = formatViewHash(view);
    clearTimeout(timer);
    if (view.variable !== variable) {
      variable = view.variable;
      write(hash, true);
      return;
    }
    timer = setTimeout(() => write(hash, false), Math.max(0, writtenAt + INTERVAL_MS - performance.now()));
  });
  effect(() => {
    const shown = model.variable.value;
    if (shown !== undefined) document.title = `${shown.title} · ${model.source.title} · Explore`;
  });
}

const root = document.querySelector<HTMLElement>("#explorer");
if (root !== null) {
  const absolute = (url: string | undefined): string => new URL(url ?? "", document.baseURI).href;
  const {
    store,
    overviews,
    select,
    maxSelection,
    tiles,
    wms,
    group = "",
    dataset = "",
    title = dataset,
    unversioned = dataset,
    versions,
    page,
    worker,
  } = root.dataset;
  const client = new WorkerClient(new Worker(absolute(worker), { type: "module" }));
  const model = new ExploreModel(client, {
    store: absolute(store),
    overviews: overviews === undefined ? undefined : absolute(overviews),
    select: select === undefined ? undefined : absolute(select),
    maxSelectionBytes: Number(maxSelection),
    maps: {
      tiles: tiles === undefined ? undefined : absolute(tiles),
      wms: wms === undefined ? undefined : absolute(wms),
    },
    group,
    dataset,
    title,
    unversioned,
    versions: versions === undefined ? undefined : absolute(versions),
    page: absolute(page),
    coasts: { coarse: absolute(root.dataset["coast-110m"]), fine: absolute(root.dataset["coast-50m"]) },
    token: new URLSearchParams(location.search).get("token") ?? undefined,
  });
  keepAddress(model);
  // Without this, what the page shows to browsers without scripts would stay in front.
  root.replaceChildren();
  render(<ExplorerPage model={model} />, root);
  void model.open();
}
