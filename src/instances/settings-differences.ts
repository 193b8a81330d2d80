/** The settings that all nodes must share, by name. A secret is represented by a digest. */
export type ComparedSettings = Readonly<Record<string, string>>

interface NodeSettings {
  node: string
  /** JSON of `ComparedSettings`. */
  settings: string
}

/** One line for the log about each node whose settings differ. */
export interface Difference {
  node: string
  /** The differing values by the name of the setting: here, and on that node. */
  differing: Record<string, readonly [string | null, string | null]>
}

/** @param others the settings of other nodes; a version may know other settings, which are not compared */
export function findDifferences(own: ComparedSettings, others: readonly NodeSettings[]): Difference[] {
  return others.flatMap(({ node, settings }) => {
    const there: ComparedSettings = JSON.parse(settings)
    const names = Object.keys(own).filter(name => name in there && there[name] !== own[name])
    const differing = Object.fromEntries(names.map(name => [name, shown(name, own[name]!, there[name]!)]))
    return names.length === 0 ? [] : [{ node, differing }]
  })
}

function shown(name: string, here: string, there: string): readonly [string | null, string | null] {
  return name.endsWith('_KEY') ? [null, null] : [here, there]
}
