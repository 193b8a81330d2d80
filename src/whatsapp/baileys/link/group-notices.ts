import { type BinaryNode, getBinaryNodeChild, isJidGroup, type WASocket } from 'baileys'
import { extractGroupMetadata } from 'baileys/lib/Socket/groups.js'
import type { GroupChange, GroupNotice } from '../../../domain/recipients/group.ts'
import type { LibraryCalls } from '../library-scope.ts'
import { parseGroupChanges, toGroupDetails } from '../parsing/group.ts'
import type { LinkEvents } from './events.ts'
import { orNull } from './phone-copies.ts'

const GROUP_NOTIFICATION = 'w:gp2'

interface GroupNotices {
  events: Pick<LinkEvents, 'groupChanged' | 'groupsListed'>
  calls: LibraryCalls
  /** A notification could not be recorded and was not acknowledged. */
  onFailed(error: unknown): void
}

/** Records the changes of a group before Baileys acknowledges their notification. */
export function recordGroupChanges({ ws, ev }: WASocket, { events, calls, onFailed }: GroupNotices): void {
  const baileys = ws.listeners('CB:notification')
  ws.removeAllListeners('CB:notification')
  ws.on('CB:notification', (node: BinaryNode) => {
    const passOn = () => {
      if (calls.closed.aborted) return
      for (const listener of baileys) listener.call(ws, node)
    }
    const group = node.attrs['from']
    const changes = node.attrs['type'] === GROUP_NOTIFICATION ? (orNull(() => changesIn(node)) ?? []) : []
    if (changes.length === 0 || !group || !isJidGroup(group)) passOn()
    else events.groupChanged(group, changes, noticeOf(node)).then(passOn, onFailed)
  })
  ev.on('groups.update', groups => {
    const described = groups.flatMap(group => (isDescribed(group) ? [toGroupDetails(group)] : []))
    if (described.length > 0) events.groupsListed(described)
  })
}

/** @throws if the notification lacks what Baileys reads */
function changesIn(node: BinaryNode): GroupChange[] {
  const create = getBinaryNodeChild(node, 'create')
  return create ? [{ kind: 'joined', group: toGroupDetails(extractGroupMetadata(create)) }] : parseGroupChanges(node)
}

/** Null if the notification cannot be recognised when it is delivered again. */
function noticeOf({ attrs: { id, t } }: BinaryNode): GroupNotice | null {
  const at = Number(t)
  return id && Number.isSafeInteger(at) && at > 0 ? { id, at } : null
}

/** Baileys reports a change in the same event, with the changed fields only. */
function isDescribed(
  group: Partial<Parameters<typeof toGroupDetails>[0]>,
): group is Parameters<typeof toGroupDetails>[0] {
  return group.id !== undefined && group.participants !== undefined && group.participants.length > 0
}
