import { render } from "preact";
import { keepAddress } from "./page/address.js";
import { App } from "./page/app.js";
import { ExploreModel } from "./page/model.js";
import { WorkerClient } from "./page/worker-client.js";
import "./page/explore.css";

const root = document.querySelector<HTMLElement>("#explorer");
if (root !== null) {
  const absolute = (url: string | undefined): string => new URL(url ?? "", document.baseURI).href;
  const { store, overviews, group = "", dataset = "", title = dataset, page, worker } = root.dataset;
  const client = new WorkerClient(new Worker(absolute(worker), { type: "module" }));
  const model = new ExploreModel(client, {
    store: absolute(store),
    overviews: overviews === undefined ? undefined : absolute(overviews),
    group,
    dataset,
    title,
    page: absolute(page),
    coasts: { coarse: absolute(root.dataset["coast-110m"]), fine: absolute(root.dataset["coast-50m"]) },
    token: new URLSearchParams(location.search).get("token") ?? undefined,
  });
  keepAddress(model);
  // Without this, what the page shows to browsers without scripts would stay in front.
  root.replaceChildren();
  render(<App model={model} />, root);
  void model.open();
}
