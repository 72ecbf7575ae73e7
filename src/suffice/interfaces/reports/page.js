"use strict";
(function () {
  var field = document.getElementById("filter");
  var named = Array.prototype.slice.call(document.querySelectorAll("[data-name]"));
  var found = document.getElementById("found");
  field.closest(".filter").hidden = false;

  function narrow() {
    var wanted = field.value.trim().toLowerCase();
    var n = 0;
    named.forEach(function (element) {
      var there = !wanted || element.dataset.name.indexOf(wanted) >= 0;
      element.hidden = !there;
      n += there ? 1 : 0;
    });
    found.textContent = wanted ? n + " of " + named.length + " shown" : "";
  }
  field.addEventListener("input", narrow);

  var panel = document.getElementById("why");
  var graph = document.querySelector(".graph");
  if (!panel || !graph) { return; }

  function tell(event) {
    var link = event.target.closest ? event.target.closest("a") : null;
    if (!link) { return; }
    var title = link.querySelector("title");
    panel.textContent = title ? title.textContent : "";
    panel.hidden = !panel.textContent;
  }
  graph.addEventListener("mouseover", tell);
  graph.addEventListener("focusin", tell);
  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { panel.hidden = true; }
  });
  graph.addEventListener("click", function () {
    if (field.value) { field.value = ""; narrow(); }
  });
}());
