import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { createRouter, type Router } from "../../src/http/router.js";
import { routeOf } from "../support/servers/serve-routes.js";

const TEMPLATES = [
  "/",
  "/plugins",
  "/versions",
  "/datasets",
  "/datasets/{dataset_id}",
  "/datasets/{dataset_id}/",
  "/datasets/{dataset_id}/keys",
  "/datasets/{dataset_id}/groups",
  "/datasets/{dataset_id}/groups/{group_path:path}",
  "/datasets/{dataset_id}/groups/{group_path:path}/keys",
  "/datasets/{dataset_id}/groups/{group_path:path}/info",
  "/datasets/{dataset_id}/zarr",
  "/datasets/{dataset_id}/zarr/{group_path:path}/",
  "/datasets/{dataset_id}/zarr/{group_path:path}/.zmetadata",
  "/datasets/{dataset_id}/zarr/{var:path}/.zarray",
  "/datasets/{dataset_id}/zarr/{var:path}/{chunk}",
];

function routerOf(templates: readonly string[]): Router {
  return createRouter(templates.map((path) => routeOf(path, () => ({ kind: "redirect", to: "with-slash" }))));
}

const router = routerOf(TEMPLATES);

function matched(path: string, of = router): readonly [string, Readonly<Record<string, string>>] | undefined {
  const match = of.match(path);
  return match === undefined ? undefined : [match.route.path, match.params];
}

function faultOf(path: string): ZpublishError {
  try {
    router.match(path);
  } catch (error) {
    if (error instanceof ZpublishError) return error;
  }
  throw new Error(`${path} was not refused`);
}

t.test("finds every route of the service by its path", async (t) => {
  const zarr = "/datasets/{dataset_id}/zarr";
  const groups = "/datasets/{dataset_id}/groups";
  const chunk = `${zarr}/{var:path}/{chunk}`;
  const cases: readonly [string, string, Record<string, string>][] = [
    ["/", "/", {}],
    ["/plugins", "/plugins", {}],
    ["/datasets", "/datasets", {}],
    ["/datasets/x", "/datasets/{dataset_id}", { dataset_id: "x" }],
    ["/datasets/x/", "/datasets/{dataset_id}/", { dataset_id: "x" }],
    ["/datasets/x/keys", "/datasets/{dataset_id}/keys", { dataset_id: "x" }],
    ["/datasets/x/groups", groups, { dataset_id: "x" }],
    ["/datasets/x/groups/", `${groups}/{group_path:path}`, { dataset_id: "x", group_path: "" }],
    ["/datasets/x/groups/a/b", `${groups}/{group_path:path}`, { dataset_id: "x", group_path: "a/b" }],
    ["/datasets/x/groups//a/b", `${groups}/{group_path:path}`, { dataset_id: "x", group_path: "/a/b" }],
    ["/datasets/x/groups/keys", `${groups}/{group_path:path}/keys`, { dataset_id: "x", group_path: "" }],
    ["/datasets/x/groups//keys", `${groups}/{group_path:path}/keys`, { dataset_id: "x", group_path: "" }],
    [
      "/datasets/x/groups//a/b/keys",
      `${groups}/{group_path:path}/keys`,
      { dataset_id: "x", group_path: "/a/b" },
    ],
    ["/datasets/x/groups/a/keys/", `${groups}/{group_path:path}`, { dataset_id: "x", group_path: "a/keys/" }],
    [
      "/datasets/x/groups/keys/info",
      `${groups}/{group_path:path}/info`,
      { dataset_id: "x", group_path: "keys" },
    ],
    ["/datasets/x/zarr", zarr, { dataset_id: "x" }],
    ["/datasets/x/zarr/", `${zarr}/{group_path:path}/`, { dataset_id: "x", group_path: "" }],
    ["/datasets/x/zarr/a/b/", `${zarr}/{group_path:path}/`, { dataset_id: "x", group_path: "a/b" }],
    [
      "/datasets/x/zarr/.zmetadata",
      `${zarr}/{group_path:path}/.zmetadata`,
      { dataset_id: "x", group_path: "" },
    ],
    [
      "/datasets/x/zarr//.zmetadata",
      `${zarr}/{group_path:path}/.zmetadata`,
      { dataset_id: "x", group_path: "" },
    ],
    [
      "/datasets/x/zarr/a/.zmetadata",
      `${zarr}/{group_path:path}/.zmetadata`,
      { dataset_id: "x", group_path: "a" },
    ],
    ["/datasets/x/zarr/t/0.0", chunk, { dataset_id: "x", var: "t", chunk: "0.0" }],
    ["/datasets/x/zarr/a//t/0", chunk, { dataset_id: "x", var: "a//t", chunk: "0" }],
    ["/datasets/x/zarr/t", chunk, { dataset_id: "x", var: "", chunk: "t" }],
  ];
  for (const [path, template, params] of cases) t.strictSame(matched(path), [template, params], path);
});

t.test("takes the ending of a path parameter for what it is", async (t) => {
  const pictures = routerOf(["/{id}/picture/{var:path}.png", "/{id}/picture/a/{var:path}"]);
  const template = "/{id}/picture/{var:path}.png";
  t.strictSame(matched("/d/picture/t.png", pictures), [template, { id: "d", var: "t" }]);
  t.strictSame(matched("/d/picture/b/c/t%2e%70ng", pictures), [template, { id: "d", var: "b/c/t" }]);
  t.strictSame(matched("/d/picture/t.png.png", pictures), [template, { id: "d", var: "t.png" }]);
  t.strictSame(matched("/d/picture/.png", pictures), [template, { id: "d", var: "" }]);
  t.strictSame(matched("/d/picture/a/t.png", pictures), [
    "/{id}/picture/a/{var:path}",
    { id: "d", var: "t.png" },
  ]);
  for (const path of ["/d/picture", "/d/picture/", "/d/picture/t", "/d/picture/t.pn", "/d/picture/t.png/"])
    t.equal(matched(path, pictures), undefined, path);
});

t.test("knows no other path", async (t) => {
  for (const path of [
    "",
    "x",
    "//",
    "//datasets",
    "/nope",
    "/plugins/",
    "/Plugins",
    "/datasets/",
    "/datasets//",
    "/datasets//keys",
    "/datasets/x/nope",
    "/datasets/x/keys/",
    "/foo/%zz",
  ]) {
    t.equal(matched(path), undefined, path);
  }
});

t.test("percent-decodes each segment once, as UTF-8", async (t) => {
  t.strictSame(matched("/datasets/caf%C3%A9/keys")?.[1], { dataset_id: "café" });
  t.strictSame(
    matched("/datasets/café/keys")?.[1],
    { dataset_id: "café" },
    "as clients send it that do not encode",
  );
  t.strictSame(matched("/datasets/a%2520b/keys")?.[1], { dataset_id: "a%20b" });
  t.strictSame(matched("/d%61tasets/x")?.[0], "/datasets/{dataset_id}");
  t.strictSame(matched("/datasets/x/zarr/%C3%A9/b%20c/0.0")?.[1], {
    dataset_id: "x",
    var: "é/b c",
    chunk: "0.0",
  });
  t.strictSame(
    matched("/datasets/%EF%BF%BD/keys")?.[1],
    { dataset_id: "\ufffd" },
    "a replacement character that is meant",
  );
  t.strictSame(matched("/datasets/%F0%9F%98%80/keys")?.[1], { dataset_id: "😀" });
});

t.test(
  "matches nothing if a segment is a dot or two in any spelling, or contains an encoded slash",
  async (t) => {
    for (const path of [
      "/datasets/./keys",
      "/datasets/../keys",
      "/datasets/x/zarr/../../y",
      "/datasets/x/zarr/..",
      "/datasets/x/zarr/.",
      "/datasets/%2e%2e/keys",
      "/datasets/.%2E/keys",
      "/datasets/%2e/",
      "/datasets/x/zarr/..%2f..%2fetc/0",
      "/datasets/a%2Fb/keys",
      "/datasets/x%2fkeys",
    ]) {
      t.equal(matched(path), undefined, path);
    }
    t.strictSame(matched("/datasets/.../keys")?.[1], { dataset_id: "..." }, "three dots are a name");
    t.strictSame(matched("/datasets/%252e%252e/keys")?.[1], { dataset_id: "%2e%2e" }, "decoded once");
  },
);

t.test("refuses parameters that are no valid strings, and says which and why", async (t) => {
  const cases: readonly [string, string, string, string][] = [
    ["/datasets/%zz/keys", "dataset_id", "percent_encoding", "%zz"],
    ["/datasets/a%/keys", "dataset_id", "percent_encoding", "a%"],
    ["/datasets/%ff/keys", "dataset_id", "string_unicode", "%ff"],
    ["/datasets/%ED%A0%80/", "dataset_id", "string_unicode", "%ED%A0%80"],
    ["/datasets/%C0%AE/", "dataset_id", "string_unicode", "%C0%AE"],
    ["/datasets/a\ufffd/", "dataset_id", "string_unicode", "a\ufffd"],
    ["/datasets/a%00b/keys", "dataset_id", "string_control_character", "a%00b"],
    ["/datasets/a%7F/keys", "dataset_id", "string_control_character", "a%7F"],
    ["/datasets/a%C2%85/keys", "dataset_id", "string_control_character", "a%C2%85"],
    ["/datasets/x/zarr/a/%zz/b/0.0", "var", "percent_encoding", "a/%zz/b"],
    ["/datasets/x/zarr/a/b/%0A", "chunk", "string_control_character", "%0A"],
    ["/datasets/é/groups/%ff/keys", "group_path", "string_unicode", "%ff"],
  ];
  for (const [path, parameter, type, input] of cases) {
    const { code, details } = faultOf(path);
    t.equal(code, "invalid-path", path);
    t.match(details, { parameter, type, input, msg: /^Expected/ }, path);
  }
});

t.test("bounds a parameter to 1,024 bytes of UTF-8, slashes included", async (t) => {
  t.equal(matched(`/datasets/${"a".repeat(1024)}/keys`)?.[1].dataset_id?.length, 1024);
  t.equal(matched(`/datasets/${"%C3%A9".repeat(512)}/keys`)?.[1].dataset_id?.length, 512);
  for (const id of ["a".repeat(1025), "%C3%A9".repeat(513), "é".repeat(513), "%F0%9F%98%80".repeat(257)]) {
    const { details } = faultOf(`/datasets/${id}/keys`);
    t.match(details, { parameter: "dataset_id", type: "string_too_long" });
    t.ok(String(details.input).length <= 101, "what is shown of it is short");
  }
  t.equal(faultOf(`/datasets/x/zarr/${"ab/".repeat(342)}c/0`).details.parameter, "var");
});

t.test("prefers static segments to parameters, and longer static endings to shorter", async (t) => {
  const of = routerOf([
    "/a/{x}/c",
    "/a/b/d",
    "/f/{p:path}",
    "/f/{p:path}/k",
    "/f/{p:path}/j/k",
    "/f/{p:path}/{y}/k",
    "/f/s/{x}",
  ]);
  t.equal(matched("/a/b/d", of)?.[0], "/a/b/d");
  t.strictSame(
    matched("/a/b/c", of),
    ["/a/{x}/c", { x: "b" }],
    "goes back where the static segment leads nowhere",
  );
  t.equal(matched("/f/k", of)?.[0], "/f/{p:path}/k");
  t.strictSame(matched("/f/1/j/k", of), ["/f/{p:path}/j/k", { p: "1" }]);
  t.strictSame(matched("/f/1/2/k", of), ["/f/{p:path}/{y}/k", { p: "1", y: "2" }]);
  t.strictSame(matched("/f//k", of), ["/f/{p:path}/k", { p: "" }], "a {name} is no empty segment");
  t.strictSame(matched("/f/s/k", of), ["/f/s/{x}", { x: "k" }]);
  t.strictSame(matched("/f/s", of), ["/f/{p:path}", { p: "s" }]);
  t.strictSame(matched("/f", of), ["/f/{p:path}", { p: "" }]);
  t.strictSame(matched("/f/s/", of), ["/f/{p:path}", { p: "s/" }]);
});

t.test("names parameters in the order of the path, before and behind a path parameter", async (t) => {
  const of = routerOf(["/{a}/{b}/{p:path}/{c}/x/{d}"]);
  t.strictSame(matched("/1/2/3/4/5/x/6", of)?.[1], { a: "1", b: "2", p: "3/4", c: "5", d: "6" });
  t.strictSame(matched("/1/2/5/x/6", of)?.[1], { a: "1", b: "2", p: "", c: "5", d: "6" });
  t.equal(matched("/1/2/x/6", of), undefined);
});

t.test("refuses two routes that answer the same paths, naming both", async (t) => {
  for (const [first, second] of [
    ["/a/{x}", "/a/{y}"],
    ["/a", "/a"],
    ["/a/{p:path}/k", "/a/{q:path}/k"],
    ["/{x}/{p:path}/{k}", "/{y}/{q:path}/{l}"],
  ] as const) {
    t.throws(() => routerOf([first, second]), {
      code: "invalid-config",
      message: `Routes '${first}' and '${second}' answer the same paths`,
    });
  }
});

t.test("refuses malformed templates", async (t) => {
  for (const path of [
    "",
    "a",
    "/a//b",
    "/{x}/{x}",
    "/{p:path}/{q:path}",
    "/a{x}",
    "/{X}",
    "/%20",
    "/a/../b",
    "/a b",
    "/{x:int}",
    "/{x}.png",
    "/{x:path}.png/a",
    "/{x:path}png",
  ]) {
    t.throws(() => routerOf([path]), { code: "invalid-config", message: /no valid template/ }, path);
  }
});
