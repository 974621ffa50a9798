// Builds the page's script and style sheet into internal/report/webpage, where Go embeds them. Both
// are committed, so that a clone builds the program without node.
import { build } from "esbuild";

await build({
  entryPoints: { page: "src/main.ts" },
  outdir: process.argv[2] ?? "../internal/report/webpage",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii", // U+2028 and the like stay escapes
  legalComments: "inline",
  logLevel: "warning",
});
