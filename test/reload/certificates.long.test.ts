import { join } from "node:path";
import { connect } from "node:tls";
import t from "tap";
import { until } from "../support/servers/process-table.js";
import { writeArray } from "../support/servers/program-stores.js";
import { startSmall } from "../support/servers/start-program.js";
import { FIRST, makeTlsDirectory, SECOND } from "../support/servers/tls-pairs.js";

t.setTimeout(600_000);

/** The name that the server's certificate is for. */
function nameOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

for (const processes of process.platform === "linux" ? [1, 2] : [1]) {
  t.test(`certificates are read again at HUP, with ${processes} processes`, async (t) => {
    const files = await makeTlsDirectory(FIRST);
    const program = await startSmall(t, {
      processes,
      async config(directory) {
        const one = await writeArray(join(directory, "one"), 1);
        return { datasets: { one }, tlsCert: files.certFile, tlsKey: files.keyFile };
      },
    });
    t.equal(await nameOf(program.port), "first.test");

    await files.put({ cert: SECOND.cert, key: FIRST.key });
    t.equal(await program.reload(), "refused");
    t.match(program.said("cannot be used; the present one stays").at(-1)?.reason, /TLS: expected the key of/);
    t.equal(await nameOf(program.port), "first.test");

    await files.put(SECOND);
    t.equal(await program.reload(), "reloaded");
    await until(() => program.said("a new certificate is in use").length === processes);
    for (let i = 0; i < 10; i += 1) t.equal(await nameOf(program.port), "second.test");
  });
}
