import t from "tap";
import { installedNode } from "../support/servers/installed-node.js";
import { passUnder } from "./pass-under.js";

t.setTimeout(600_000);

const node = installedNode(26);

t.test("under Node.js 26", { skip: node.missing }, (t) => passUnder(t, node));
