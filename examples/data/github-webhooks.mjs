// Makes github-webhooks.jsonl from the unpacked npm package @octokit/webhooks-examples:
//
//   npm pack @octokit/webhooks-examples@7.6.1 && tar xzf octokit-webhooks-examples-7.6.1.tgz
//   node github-webhooks.mjs package > github-webhooks.jsonl
//   node github-webhooks.mjs package --all     every payload, also of GitHub Enterprise Server

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [root, ...options] = process.argv.slice(2);
const all = options.includes("--all");

// The payloads carry no delivery id: it is made from where the payload stands in the package.
const URL_NAMESPACE = "6ba7b811-9dad-11d1-80b4-00c04fd430c8";
const NAMESPACE = uuid5(URL_NAMESPACE, "https://www.npmjs.com/package/@octokit/webhooks-examples");

function uuid5(namespace, name) {
  const hash = createHash("sha1").update(Buffer.from(namespace.replaceAll("-", ""), "hex")).update(name);
  const bytes = hash.digest().subarray(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x50;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function* deliveries() {
  const folders = readdirSync(root, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const { name: folder } of folders.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (!all && folder !== "api.github.com") continue;
    for (const { name, examples } of JSON.parse(readFileSync(join(root, folder, "index.json")))) {
      for (const [index, payload] of examples.slice(0, all ? undefined : 1).entries()) {
        const delivery = uuid5(NAMESPACE, `${folder}/${name}/${index}`);
        yield JSON.stringify({ delivery, event: name, payload });
      }
    }
  }
}

// What is short comes again, after two other deliveries.
const again = [];
for (const [number, line] of [...deliveries()].entries()) {
  console.log(line);
  if (line.length < 4096) again.push({ line, due: number + 2 });
  while (again[0]?.due === number) console.log(again.shift().line);
}
for (const { line } of again) console.log(line);
