/** The settings that all nodes must share, as JSON. Null for nodes of the previous version, which are not compared. */
export function settingsOfNodes(): string[] {
  return ['alter table nodes add column settings text']
}
