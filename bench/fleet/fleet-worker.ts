/** A thread that runs simulations, one after another. */
import { parentPort } from "node:worker_threads";
import { type FleetCase, runCase } from "./fleet-case.js";

parentPort?.on("message", async (each: FleetCase) => parentPort?.postMessage(await runCase(each)));
