import { endpointsContract } from './endpoints.ts'
import type { CreateHarness } from './harness.ts'
import { accountsContract } from './people/accounts.ts'
import { auditContract } from './people/audit.ts'
import { acceptingContract } from './promises/accepting.ts'
import { admissionContract } from './promises/admission.ts'
import { apiKeysContract } from './promises/api-keys.ts'
import { connectionsContract } from './promises/connections.ts'
import { answersToContactsContract } from './promises/conversation/answers-to-contacts.ts'
import { changesContract } from './promises/conversation/changes.ts'
import { commandsContract } from './promises/conversation/commands.ts'
import { contactErasureContract } from './promises/conversation/contact-erasure.ts'
import { conversationContract } from './promises/conversation/conversation.ts'
import { eventsOfContactsContract } from './promises/conversation/events-of-contacts.ts'
import { filesOfContactsContract } from './promises/conversation/files-of-contacts.ts'
import { inboxContract } from './promises/conversation/inbox.ts'
import { incomingContract } from './promises/conversation/incoming.ts'
import { largeTextsContract } from './promises/conversation/large-texts.ts'
import { paceContract } from './promises/conversation/pace.ts'
import { scheduledContract } from './promises/conversation/scheduled.ts'
import { deliveriesContract } from './promises/deliveries.ts'
import { directoryContactsContract } from './promises/directory/contacts.ts'
import { groupsContract } from './promises/directory/groups.ts'
import { joinedGroupsContract } from './promises/directory/joined-groups.ts'
import { numberOrdersContract } from './promises/directory/number-orders.ts'
import { repeatedNoticesContract } from './promises/directory/repeated-notices.ts'
import { eventsContract } from './promises/events.ts'
import { feedContract } from './promises/feed.ts'
import { instancesContract } from './promises/instances.ts'
import { keepingContract } from './promises/keeping.ts'
import { downloadsContract } from './promises/media/downloads.ts'
import { fetchesContract } from './promises/media/fetches.ts'
import { folderContract } from './promises/media/folder.ts'
import { mediaContract } from './promises/media/media.ts'
import { openingContract } from './promises/opening.ts'
import { operatorEndpointsContract } from './promises/operator-endpoints.ts'
import { ownershipContract } from './promises/ownership.ts'
import { alertsContract } from './promises/panel/alerts.ts'
import { panelEndpointsContract } from './promises/panel/endpoints.ts'
import { panelFindingContract } from './promises/panel/finding.ts'
import { handoutsContract } from './promises/panel/handouts.ts'
import { healthContract } from './promises/panel/health.ts'
import { panelContract } from './promises/panel/panel.ts'
import { problemsContract } from './promises/panel/problems.ts'
import { totalsContract } from './promises/panel/totals.ts'
import { progressContract } from './promises/progress.ts'
import { reportsContract } from './promises/reports.ts'
import { retentionContract } from './promises/retention.ts'
import { rotationContract } from './promises/rotation.ts'
import { transfersContract } from './promises/transfers.ts'
import { troublesContract } from './promises/troubles.ts'

/** The guarantees of `src/store/store.ts`, the same for every database. */
export function storeContract(createHarness: CreateHarness): void {
  openingContract(createHarness)
  admissionContract(createHarness)
  apiKeysContract(createHarness)
  instancesContract(createHarness)
  connectionsContract(createHarness)
  reportsContract(createHarness)
  handoutsContract(createHarness)
  acceptingContract(createHarness)
  commandsContract(createHarness)
  progressContract(createHarness)
  eventsContract(createHarness)
  feedContract(createHarness)
  incomingContract(createHarness)
  conversationContract(createHarness)
  inboxContract(createHarness)
  largeTextsContract(createHarness)
  groupsContract(createHarness)
  joinedGroupsContract(createHarness)
  repeatedNoticesContract(createHarness)
  directoryContactsContract(createHarness)
  numberOrdersContract(createHarness)
  changesContract(createHarness)
  folderContract(createHarness)
  mediaContract(createHarness)
  downloadsContract(createHarness)
  fetchesContract(createHarness)
  deliveriesContract(createHarness)
  endpointsContract(createHarness)
  operatorEndpointsContract(createHarness)
  ownershipContract(createHarness)
  keepingContract(createHarness)
  retentionContract(createHarness)
  contactErasureContract(createHarness)
  eventsOfContactsContract(createHarness)
  filesOfContactsContract(createHarness)
  answersToContactsContract(createHarness)
  scheduledContract(createHarness)
  paceContract(createHarness)
  panelContract(createHarness)
  panelEndpointsContract(createHarness)
  panelFindingContract(createHarness)
  totalsContract(createHarness)
  troublesContract(createHarness)
  transfersContract(createHarness)
  rotationContract(createHarness)
  healthContract(createHarness)
  alertsContract(createHarness)
  problemsContract(createHarness)
  auditContract(createHarness)
  accountsContract(createHarness)
}
