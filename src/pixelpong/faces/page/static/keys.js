// Keys by what they print and by where they are, on any keyboard; and the full screen.

/**
 * The code of the key that was pressed, among `keys`, pairs of a letter in lower case and a code.
 * What a key prints comes first: on a French keyboard W is where others have Z. If it prints none
 * of these letters, as on a Greek keyboard, it counts by where it is.
 */
export function findKey({ key, code }, keys) {
  const letter = key.toLowerCase();
  const [, name] = keys.find(([printed]) => printed === letter)
    ?? keys.find(([, its]) => its === code) ?? [];
  return name;
}

/** Show an element alone on the whole screen, or leave that; some phones cannot. */
export function toggleFullScreen(element) {
  if (document.fullscreenElement) document.exitFullscreen();
  else if (document.fullscreenEnabled) element.requestFullscreen().catch(() => {});
}
