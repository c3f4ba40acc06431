import t from "tap";
import { placeOf, placePage, SERVICE_URL, UP } from "../../src/pages/page-place.js";

function at(rawPath: string) {
  return placeOf({ rawPath, serviceUrl: "http://h" });
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

t.test("a placed page has both values", async (t) => {
  const html = `<a href="${UP}tree">${SERVICE_URL}/datasets</a>`;
  t.equal(placePage(html, { serviceUrl: "http://h", up: "../" }), '<a href="../tree">http://h/datasets</a>');
});
