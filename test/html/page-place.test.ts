import t from "tap";
import { placeOf, placePage, SERVICE_URL, UP } from "../../src/html/page-place.js";

function at(rawPath: string, headers: Readonly<Record<string, string>> = {}, rootPath = "") {
  return placeOf({ rawPath, header: (name) => headers[name] }, rootPath);
}

t.test("the way up is one step per slash behind the dataset's, doubled ones too", async (t) => {
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

t.test("the service's address comes from Host and the root path", async (t) => {
  t.equal(at("/datasets/x/", { host: "data.example:9000" }).serviceUrl, "http://data.example:9000");
  t.equal(at("/datasets/x/", { host: "[::1]:80" }, "/prefix").serviceUrl, "http://[::1]:80/prefix");
  t.equal(at("/datasets/x/").serviceUrl, "http://localhost");
});

t.test("a proxy's headers win, the first of several values", async (t) => {
  const headers = {
    host: "10.0.0.1:9000",
    "x-forwarded-host": "data.example, inner",
    "x-forwarded-proto": "https",
    "x-forwarded-prefix": "/api/",
  };
  t.equal(at("/datasets/x/", headers, "/prefix").serviceUrl, "https://data.example/api");
});

t.test("headers that do not look like an address are ignored", async (t) => {
  const headers = {
    host: 'evil"><script>',
    "x-forwarded-host": "a b",
    "x-forwarded-proto": "javascript",
    "x-forwarded-prefix": "//evil.example/",
  };
  t.equal(at("/datasets/x/", headers).serviceUrl, "http://localhost");
});

t.test("a page is placed by putting both in", async (t) => {
  const html = `<a href="${UP}tree">${SERVICE_URL}/datasets</a>`;
  t.equal(placePage(html, { serviceUrl: "http://h", up: "../" }), '<a href="../tree">http://h/datasets</a>');
});
