/** The files of a session that Baileys has stored, by name. */
export interface SessionFiles {
  /** The name of the folder that was chosen. */
  folder: string
  files: Record<string, string>
}

const EXTENSION = '.json'

/** @param chosen what the browser found in the chosen folder, including folders below it, which are left out */
export async function readSessionFiles(chosen: Iterable<File>): Promise<SessionFiles> {
  const direct = Array.from(chosen).filter(file => pathOf(file).length <= 2 && file.name.endsWith(EXTENSION))
  const read = direct.map(async file => [file.name, await file.text()] as const)
  return { folder: direct[0] ? (pathOf(direct[0])[0] ?? '') : '', files: Object.fromEntries(await Promise.all(read)) }
}

/** The folder that was chosen, the folders below it, and the name of the file. */
function pathOf({ name, webkitRelativePath }: File): string[] {
  return (webkitRelativePath || name).split('/')
}
