// Talks with the server. A refusal becomes an Error with the server's own sentence.

export class Refused extends Error {}

async function answer(request) {
  let response;
  try {
    response = await request;
  } catch {
    throw new Refused("The workbench does not answer. Runs go on without it; start `flmarket workbench` again and open its new address.");
  }
  const kind = response.headers.get("content-type") || "";
  if (!kind.startsWith("application/json")) throw new Refused((await response.text()).trim() || `The workbench answered ${response.status}.`);
  const content = await response.json();
  if (!response.ok) throw new Refused(content.error || `The workbench answered ${response.status}.`);
  return content;
}

export function get(path, query = []) {
  const text = new URLSearchParams(query).toString();
  return answer(fetch(text ? `${path}?${text}` : path));
}

export function post(path, data) {
  return answer(fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(data) }));
}
