// Reads `PREFIX<TAB>URI` pairs as JSON; prints, for each, whether Node's parser ends outside of the prefix.
const path = require("node:path");

function readings(uri) {
  const found = [];
  let url;
  try { url = new URL(uri); } catch { return found; }
  let text = url.pathname;
  for (let layer = 0; layer < 3; layer += 1) {
    found.push(path.posix.normalize(text), path.posix.normalize(text.replaceAll("\\", "/")));
    try { text = decodeURIComponent(text); } catch { text = unescape(text); }
  }
  return found.map((one) => `${url.protocol}//${url.host}${one}`);
}

const pairs = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(pairs.map(([prefix, uri]) => {
  const [literal] = readings(prefix);
  return readings(uri).some((one) => !one.startsWith(literal));
})));
