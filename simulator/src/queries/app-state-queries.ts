/** A client reads and changes the settings that its account's devices share. */
import type { AppState } from '../app-state/app-state.ts'
import type { Answer, Asker } from '../contacts/asker.ts'
import { bytes, child, children, type Node, node } from '../wire/nodes.ts'

export async function syncAppState({ account }: Asker, iq: Node): Promise<Answer> {
  const answers: Node[] = []
  await account.applyDurably(() => {
    for (const collection of children(child(iq, 'sync'), 'collection')) answers.push(sync(account.appState, collection))
    return undefined
  })
  return [node('sync', {}, answers)]
}

function sync(state: AppState, collection: Node): Node {
  const { name = '', version } = collection.attrs
  const known = Number(version ?? 0)
  const patch = bytes(collection, 'patch')
  if (patch && known === state.version(name)) {
    state.add(name, patch)
    return node('collection', { name, version: state.version(name).toString() })
  }
  const patches = state.since(name, known).map(one => node('patch', {}, one))
  const attrs = { name, version: state.version(name).toString(), has_more_patches: 'false' }
  const missed = patches.length > 0 ? [node('patches', {}, patches)] : []
  if (!patch) return node('collection', attrs, missed.length > 0 ? missed : undefined)
  const conflict = node('error', { code: '409', text: 'conflict' })
  return node('collection', { ...attrs, type: 'error' }, [conflict, ...missed])
}
