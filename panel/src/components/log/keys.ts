/** Whether the key belongs to a field or to a shortcut of the browser. */
export function isTyping({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return true
  const element = target instanceof HTMLElement ? target : null
  return (
    element?.closest('input:not([type="checkbox"]), textarea, select, [contenteditable="true"], [role="combobox"]') !=
    null
  )
}

/** Whether a dialog is open. Keys then belong to it. */
export function hasDialog(): boolean {
  return document.querySelector('[role="dialog"]') !== null
}
