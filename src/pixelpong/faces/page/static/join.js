// How a phone joins: the address that other machines reach, as a picture for its camera.
import { ask, build } from "./parts.js";

/** Show the link to the code if other machines can reach this server. */
export async function offerToJoin(link) {
  const { address } = await ask("api/join");
  link.hidden = !address;
}

export async function mountJoin(view, signal) {
  document.title = "Join · pixelpong";
  const { address } = await ask("api/join", signal);
  if (signal.aborted) return;
  if (!address) {
    view.append(build("p", {}, "Only this machine reaches this server. Start it with ",
      build("code", {}, "--host 0.0.0.0"), " to let others join."));
    return;
  }
  view.append(
    build("h1", {}, "Join with a phone"),
    build("p", {}, "In the same network, point its camera at the code, or type the address."),
    build("img", { class: "join", src: "join.svg", alt: `QR code of ${address}` }),
    build("p", { class: "address" }, address),
  );
}
