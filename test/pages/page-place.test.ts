import t from "tap";
import { placeOf, placePage, SERVICE_URL, TOKEN_QUERY, UP } from "../../src/pages/page-place.js";

function at(rawPath: string, query = "") {
  return placeOf({ rawPath, serviceUrl: "http://h", query });
}

t.test("the way up is one step per slash after the dataset's, also for doubled ones", async (t) => {
  const expected = {
    "/datasets/x/": "./",
    "/datasets/x/tree": "./",
    "/datasets/x/groups/a": "../",
    "/datasets/x/groups/a/b": "../../",
    "/datasets/x/groups//a/b": "../../../",
    "/datasets/x/groups/a%2Fb": "../",
  };
  for (const [path, up] of Object.entries(expected)) {
    t.equal(at(path).up, up, path);
    const resolved = new URL(up, `http://host/prefix${path}`).pathname;
    t.equal(resolved, "/prefix/datasets/x/", `${path} resolves to its dataset`);
  }
});

t.test("links have the token of the page's query, and nothing else of it", async (t) => {
  t.equal(at("/datasets/x/").tokenQuery, "");
  t.equal(at("/datasets/x/", "a=b").tokenQuery, "");
  t.equal(at("/datasets/x/", "a=b&token=ab%2Bc=&c=d").tokenQuery, "?token=ab%2Bc%3D");
});

t.test("a placed page has all values", async (t) => {
  const html = `<a href="${UP}tree${TOKEN_QUERY}">${SERVICE_URL}/datasets</a>`;
  const place = { serviceUrl: "http://h", up: "../", tokenQuery: "?token=a" };
  t.equal(placePage(html, place), '<a href="../tree?token=a">http://h/datasets</a>');
});
