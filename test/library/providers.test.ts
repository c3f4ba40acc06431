import t from "tap";
import { createDataTree, createServer, type PluginDatasets } from "../../src/index.js";

function providerOf(values: Record<string, number>): PluginDatasets & { closed: number; opened: string[] } {
  const provider = {
    closed: 0,
    opened: [] as string[],
    list: () => Object.keys(values),
    async open(id: string) {
      provider.opened.push(id);
      const x = { dims: ["x"], shape: [1], data: new Int16Array([values[id] as number]) };
      return { tree: await createDataTree({ variables: { x } }) };
    },
    close() {
      provider.closed++;
    },
  };
  return provider;
}

t.test("a program publishes datasets that come and go, and a reload keeps them open", async (t) => {
  const values: Record<string, number> = { a: 1 };
  const provider = providerOf(values);
  const server = await createServer({ datasets: {}, providers: { mine: provider }, port: 0, workers: 1 });
  t.teardown(() => server.close());
  const { url } = await server.listen();
  const json = async (path: string) => (await fetch(url + path)).json();
  t.same(await json("/datasets"), ["mine~a"]);
  t.same(await json("/datasets/mine~a/keys"), ["x"]);
  values.b = 2;
  await server.refresh();
  t.same(await json("/datasets"), ["mine~a", "mine~b"]);
  const other = providerOf({ c: 3 });
  await server.reload({ datasets: {}, providers: { mine: provider, other }, port: 0, workers: 1 });
  t.same(await json("/datasets"), ["mine~a", "mine~b", "other~c"]);
  await json("/datasets/mine~a/keys");
  t.same(provider.opened, ["a"]);
  await server.reload({ datasets: {}, providers: { other }, port: 0, workers: 1 });
  t.same(await json("/datasets"), ["other~c"]);
  await server.close();
  t.same([provider.closed, other.closed], [1, 1]);
});

t.test("providers are checked, and named", async (t) => {
  for (const [providers, message] of [
    [{ "a~b": providerOf({}) }, /createServer: providers\["a~b"\]: expected a name without "~"/],
    [{ "": providerOf({}) }, /providers\[""\]: expected a non-empty name/],
    [{ a: 7 }, /createServer: providers\.a: expected an object with list and open, received 7/],
    [{ a: { list: () => [] } }, /^provider 'a': expected datasets \{list\(signal\), open\(id\)\}/],
    [[], /createServer: providers: expected an object of providers by name/],
  ] as const) {
    const options = { datasets: {}, providers, port: 0 } as unknown as Parameters<typeof createServer>[0];
    await t.rejects(createServer(options), { code: "invalid-config", message });
  }
});
