import type { ConnectionCause, ConnectionState } from '../../../src/domain/connection/connection.ts'
import type { DeliveryState } from '../../../src/domain/events/delivery.ts'
import type { EventKind } from '../../../src/domain/events/event.ts'
import type { InstanceKind } from '../../../src/domain/instance.ts'
import type { FailureCode, MessageState } from '../../../src/domain/message.ts'
import type { RefusalCode } from '../../../src/domain/refusal.ts'

export type { ActivityView as Activity } from '../../../src/api/resources/activity.ts'
export type {
  AlertRuleView as AlertRule,
  AlertTargetView as AlertTarget,
  AlertView as Alert,
  CreatedAlertTargetView as CreatedAlertTarget,
  NewAlertTargetBody as NewAlertTarget,
} from '../../../src/api/resources/alert.ts'
export type {
  AttentionView as Attention,
  FailingEndpointView as FailingOperatorEndpoint,
  TroubleView as TroubledInstance,
} from '../../../src/api/resources/attention.ts'
export type { CallsView as Calls } from '../../../src/api/resources/calls.ts'
export type { ConnectionView as Connection, ProxyView as ProxySetting } from '../../../src/api/resources/connection.ts'
export type {
  ConversationLineView as ConversationLine,
  ConversationView as Conversation,
  SandboxPhoneView as SandboxPhone,
} from '../../../src/api/resources/conversation/conversation.ts'
export type {
  ContactView as ContactRow,
  ErasedContactView as ErasedContact,
  GroupView as GroupRow,
} from '../../../src/api/resources/conversation/directory.ts'
export type {
  ChatCommandView as ChatCommand,
  ChatEntryView as ChatEntry,
  InboxChatView as InboxChat,
  LineView as ChatLine,
} from '../../../src/api/resources/conversation/inbox.ts'
export type { AdminWebhookView as Webhook } from '../../../src/api/resources/events/admin-webhook.ts'
export type { EndpointView as Endpoint } from '../../../src/api/resources/events/endpoint.ts'
export type { EndpointHealthView as EndpointHealth } from '../../../src/api/resources/events/endpoint-health.ts'
export type {
  AttemptView as Attempt,
  DeliveryView as Delivery,
  EventDetailView as EventDetail,
  EventView as Event,
} from '../../../src/api/resources/events/event.ts'
export type { OperatorEndpointView as OperatorEndpoint } from '../../../src/api/resources/events/operator-endpoint.ts'
export type { WebhookTestView as WebhookTest } from '../../../src/api/resources/events/webhook-test.ts'
export type { FoundView as Found } from '../../../src/api/resources/found.ts'
export type { HealthView as Health } from '../../../src/api/resources/health.ts'
export type {
  CreatedInstanceView as CreatedInstance,
  InstanceView as Instance,
} from '../../../src/api/resources/instance.ts'
export type {
  ListedMediaView as Medium,
  MediaUsageView as MediaUsage,
} from '../../../src/api/resources/media.ts'
export type { MessageView as Message } from '../../../src/api/resources/message.ts'
export type { MessageLifeView as MessageLife } from '../../../src/api/resources/message-life.ts'
export type { PaceView as Pace } from '../../../src/api/resources/pace.ts'
export type {
  AccountView as Account,
  InvitedAccountView as InvitedAccount,
} from '../../../src/api/resources/people/account.ts'
export type {
  ApiKeyView as ApiKey,
  CreatedApiKeyView as CreatedApiKey,
} from '../../../src/api/resources/people/api-key.ts'
export type {
  AuditCheckView as AuditCheck,
  AuditRecordView as AuditRecord,
} from '../../../src/api/resources/people/audit.ts'
export type {
  CreatedLinkView as CreatedLink,
  LinkPageView as LinkPageState,
  LinkView as HandedOutLink,
} from '../../../src/api/resources/people/handout.ts'
export type {
  ListedSessionView as ListedSession,
  SessionView as Session,
} from '../../../src/api/resources/people/session.ts'
export type {
  BegunSignInView as BegunSignIn,
  SignInOptionsView as SignInOptions,
} from '../../../src/api/resources/people/sign-in.ts'
export type {
  DeliveryCountsView as DeliveryCounts,
  StatisticsBucketView as StatisticsBucket,
  StatisticsView as Statistics,
} from '../../../src/api/resources/statistics.ts'
export type {
  ConnectionCause,
  ConnectionState,
  DeliveryState,
  EventKind,
  FailureCode,
  InstanceKind,
  MessageState,
  RefusalCode,
}

/** A page of a list; `nextCursor` is null on the last one. */
export interface Page<T> {
  data: T[]
  nextCursor: string | null
}
