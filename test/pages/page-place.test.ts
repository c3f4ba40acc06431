import t from "tap";
import {
  DATASET_URL,
  placeOf,
  placePage,
  quotesAddress,
  ROOT,
  SERVICE_URL,
  TOKEN_QUERY,
  UP,
} from "../../src/pages/page-place.js";

function at(rawPath: string, { query = "", datasetPath = "/datasets/x/" } = {}) {
  return placeOf({ rawPath, serviceUrl: "http://h", query }, datasetPath);
}

t.test("the way up is one step per slash after the dataset's, also for doubled ones", async (t) => {
  const expected = {
    "": "./",
    tree: "./",
    "groups/a": "../",
    "groups/a/b": "../../",
    "groups//a/b": "../../../",
    "groups/a%2Fb": "../",
  };
  for (const datasetPath of ["/datasets/x/", "/"]) {
    for (const [below, up] of Object.entries(expected)) {
      const path = datasetPath + below;
      const place = at(path, { datasetPath });
      t.equal(place.up, up, path);
      const resolve = (link: string) => new URL(link, `http://host/prefix${path}`).pathname;
      t.equal(resolve(up), `/prefix${datasetPath}`, `${path} resolves to its dataset`);
      t.equal(resolve(place.root), "/prefix/", `${path} resolves to the root`);
    }
  }
});

t.test("links have the token of the page's query, and nothing else of it", async (t) => {
  t.equal(at("/datasets/x/").tokenQuery, "");
  t.equal(at("/datasets/x/", { query: "a=b" }).tokenQuery, "");
  t.equal(at("/datasets/x/", { query: "a=b&token=ab%2Bc=&c=d" }).tokenQuery, "?token=ab%2Bc%3D");
});

t.test("a placed page has all values", async (t) => {
  const html = `<a href="${UP}tree${TOKEN_QUERY}">${SERVICE_URL}/datasets ${DATASET_URL}zarr</a>${ROOT}docs`;
  const place = at("/datasets/x/groups/a", { query: "token=a" });
  t.equal(
    placePage(html, place),
    '<a href="../tree?token=a">http://h/datasets http://h/datasets/x/zarr</a>../../../docs',
  );
  t.ok(quotesAddress(SERVICE_URL));
  t.ok(quotesAddress(DATASET_URL));
  t.notOk(quotesAddress(ROOT + UP + TOKEN_QUERY));
});
