// Says in one line that the page failed, so that it is never silently blank. Any browser of the last
// twenty years can read this file, also one that cannot read the others.
(function () {
  var NEEDS = "It needs Chrome or Edge 108, Firefox 113, Safari 16.4 or newer.";

  function tell(error) {
    document.getElementById("failure").textContent = "The page failed (" + error + "). " + NEEDS;
  }

  addEventListener("error", function (event) {
    var file = event.target && (event.target.src || event.target.href);
    tell(event.error || event.message || "cannot load " + file);
  }, true); // also for files, whose events do not bubble
  addEventListener("unhandledrejection", function (event) { tell(event.reason); });
  document.addEventListener("DOMContentLoaded", function () {
    if (!("noModule" in document.createElement("script"))) tell("this browser is too old");
  });
})();
