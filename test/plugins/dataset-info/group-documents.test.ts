import t from "tap";
import { stringifyJson } from "../../../src/json/stringify-json.js";
import { datasetDict, datasetSchema } from "../../../src/plugins/dataset-info-plugin.js";
import { fakeSnapshot, fakeType } from "../../support/datasets/fake-snapshot.js";

const GROUP = fakeSnapshot("x", {
  attrs: { title: "T", count: 9007199254740993n, missing: Number.NaN },
  variables: {
    lat: { dims: ["lat"], shape: [2], type: fakeType("f", 4, ">"), attrs: { units: "degrees" } },
    name: { dims: ["lat"], shape: [2], type: fakeType("U", 16), coordinate: true },
    air: { dims: ["time", "lat"], shape: [3, 2], type: fakeType("i", 2), attrs: { scale_factor: 0.01 } },
    code: { dims: ["lat"], shape: [2], type: fakeType("S", 5) },
  },
}).tree.root;

t.test(
  "a dictionary has coordinates, attributes, dimensions and data variables, types as numpy's str",
  async (t) => {
    t.equal(
      stringifyJson(datasetDict(GROUP)),
      '{"coords":{"lat":{"dims":["lat"],"attrs":{"units":"degrees"},"dtype":">f4","shape":[2]},' +
        '"name":{"dims":["lat"],"attrs":{},"dtype":"<U4","shape":[2]}},' +
        '"attrs":{"title":"T","count":9007199254740993,"missing":"NaN"},' +
        '"dims":{"lat":2,"time":3},' +
        '"data_vars":{"air":{"dims":["time","lat"],"attrs":{"scale_factor":0.01},"dtype":"int16","shape":[3,2]},' +
        `"code":{"dims":["lat"],"attrs":{},"dtype":${JSON.stringify(GROUP.variables.get("code")?.dataType.numpyStr)},"shape":[2]}}}`,
    );
  },
);

t.test("a schema has dimensions, variables and global attributes, types as numpy's name", async (t) => {
  t.equal(
    stringifyJson(datasetSchema(GROUP)),
    '{"dimensions":{"lat":2,"time":3},' +
      '"variables":{"lat":{"type":"float32","dimensions":["lat"],"attributes":{"units":"degrees"}},' +
      '"name":{"type":"str128","dimensions":["lat"],"attributes":{}},' +
      '"air":{"type":"int16","dimensions":["time","lat"],"attributes":{"scale_factor":0.01}},' +
      '"code":{"type":"bytes40","dimensions":["lat"],"attributes":{}}},' +
      '"global_attributes":{"title":"T","count":9007199254740993,"missing":"NaN"}}',
  );
});

t.test("an empty group has all keys", async (t) => {
  const { root } = fakeSnapshot("empty", {}).tree;
  t.equal(stringifyJson(datasetDict(root)), '{"coords":{},"attrs":{},"dims":{},"data_vars":{}}');
  t.equal(stringifyJson(datasetSchema(root)), '{"dimensions":{},"variables":{},"global_attributes":{}}');
});

t.test("a variable called __proto__ is one like any other", async (t) => {
  const variables = Object.fromEntries([["__proto__", { dims: [], shape: [] }]]);
  const { root } = fakeSnapshot("x", { variables }).tree;
  t.match(stringifyJson(datasetDict(root)), '"data_vars":{"__proto__":{"dims":[]');
  t.match(stringifyJson(datasetSchema(root)), '"variables":{"__proto__":{"type"');
});
