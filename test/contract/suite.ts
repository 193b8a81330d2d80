import { acceptingContract } from './accepting.ts'
import { admissionContract } from './admission.ts'
import { connectionsContract } from './connections.ts'
import { deliveriesContract } from './deliveries.ts'
import { eventsContract } from './events.ts'
import type { CreateHarness } from './harness.ts'
import { healthContract } from './health.ts'
import { incomingContract } from './incoming.ts'
import { instancesContract } from './instances.ts'
import { keepingContract } from './keeping.ts'
import { openingContract } from './opening.ts'
import { ownershipContract } from './ownership.ts'
import { panelContract } from './panel.ts'
import { progressContract } from './progress.ts'
import { retentionContract } from './retention.ts'
import { rotationContract } from './rotation.ts'
import { totalsContract } from './totals.ts'

/** The guarantees of `src/store/store.ts`, the same for every database. */
export function storeContract(createHarness: CreateHarness): void {
  openingContract(createHarness)
  admissionContract(createHarness)
  instancesContract(createHarness)
  connectionsContract(createHarness)
  acceptingContract(createHarness)
  progressContract(createHarness)
  eventsContract(createHarness)
  incomingContract(createHarness)
  deliveriesContract(createHarness)
  ownershipContract(createHarness)
  keepingContract(createHarness)
  retentionContract(createHarness)
  panelContract(createHarness)
  totalsContract(createHarness)
  rotationContract(createHarness)
  healthContract(createHarness)
}
