import { render } from "preact";
import { keepAddress } from "./address.js";
import { App } from "./app.js";
import { ExploreModel } from "./model.js";
import { WorkerClient } from "./worker-client.js";
import "./explore.css";

const root = document.querySelector<HTMLElement>("[data-store]");
if (root !== null) {
  const { store = "", overviews, group = "", dataset = "", title, worker = "" } = root.dataset;
  const absolute = (url: string): string => new URL(url, document.baseURI).href;
  const client = new WorkerClient(new Worker(absolute(worker), { type: "module" }));
  const model = new ExploreModel(client, {
    store: absolute(store),
    overviews: overviews === undefined || overviews === "" ? undefined : absolute(overviews),
    group,
    dataset,
    title: title ?? dataset,
    token: new URLSearchParams(location.search).get("token") ?? undefined,
  });
  keepAddress(model);
  render(<App model={model} />, root);
  void model.open();
}
