// Bundles the page into the package. The same sources give the same bytes: no times, no hashes, no source maps.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";

const out = new URL("../src/suffice/interfaces/explorer/static/", import.meta.url);
const from = new URL("./src/", import.meta.url);

await mkdir(out, { recursive: true });
await build({
  entryPoints: { app: new URL("main.tsx", from).pathname },
  outdir: out.pathname,
  absWorkingDir: new URL(".", import.meta.url).pathname,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
await build({ entryPoints: { app: new URL("style/app.css", from).pathname }, outdir: out.pathname, bundle: true, minify: true, logLevel: "warning" });
for (const name of ["index.html", "icon.svg"]) await copyFile(new URL(name, from), new URL(name, out));

const preact = new URL("./node_modules/preact/", import.meta.url);
const { version } = JSON.parse(await readFile(new URL("package.json", preact), "utf8"));
const licence = await readFile(new URL("LICENSE", preact), "utf8");
await writeFile(new URL("THIRD_PARTY.txt", out), `app.js contains preact ${version}, under this licence:\n\n${licence}`);
