import type { InstanceId } from '../../domain/ids.ts'
import type { HeardContact } from '../../domain/recipients/contact.ts'
import type { GroupChange, GroupDetails } from '../../domain/recipients/group.ts'
import type { Core } from '../engine/core.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { EventRecorder } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import type { DescribedGroup, Directory, DirectoryContact, DueGroup, KnownGroup, ListedGroup } from './directory.ts'
import { HeardContacts } from './heard-contacts.ts'
import { listContacts } from './listed-contacts.ts'
import { StoredGroups } from './stored-groups.ts'

export class StoredDirectory implements Directory {
  readonly #core: Core
  readonly #groups: StoredGroups
  readonly #contacts: HeardContacts

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#groups = new StoredGroups(core, recorder)
    this.#contacts = new HeardContacts(core)
  }

  listGroups(instanceId: InstanceId, page: PageRequest, search?: string): Promise<Page<ListedGroup>> {
    return this.#groups.list(instanceId, page, search)
  }

  findGroup(instanceId: InstanceId, id: string): Promise<DescribedGroup | null> {
    return this.#groups.find(instanceId, id)
  }

  listContacts(instanceId: InstanceId, page: PageRequest, search?: string): Promise<Page<DirectoryContact>> {
    return listContacts(this.#core, instanceId, page, search)
  }

  readGroup(instanceId: InstanceId, id: string): Promise<KnownGroup | null> {
    return this.#groups.read(instanceId, id)
  }

  recordGroups(
    lease: Lease,
    groups: readonly GroupDetails[],
    of: Parameters<Directory['recordGroups']>[2],
  ): Promise<void> {
    return this.#groups.record(lease, groups, of)
  }

  recordNoMember(lease: Lease, id: string, of: { askedAt: number; now: number }): Promise<void> {
    return this.#groups.deny(lease, id, of)
  }

  recordGroupChanges(
    lease: Lease,
    id: string,
    changes: readonly GroupChange[],
    of: Parameters<Directory['recordGroupChanges']>[3],
  ): Promise<'recorded' | 'unknown'> {
    return this.#groups.change(lease, id, changes, of)
  }

  listDueGroups(instanceId: InstanceId): Promise<DueGroup[]> {
    return this.#groups.listDue(instanceId)
  }

  recordContacts(lease: Lease, contacts: readonly HeardContact[]): Promise<void> {
    return this.#contacts.record(lease, contacts)
  }

  findFilled(instanceId: InstanceId): Promise<{ groups: boolean; contacts: boolean }> {
    return this.#groups.findFilled(instanceId)
  }

  recordContactsFilled(lease: Lease, at: number | null): Promise<void> {
    return this.#groups.recordContactsFilled(lease, at)
  }

  recordGroupsFilled(lease: Lease, ids: readonly string[], of: { askedAt: number; now: number }): Promise<void> {
    return this.#groups.recordGroupsFilled(lease, ids, of)
  }
}
