export type { Group, GroupChange, GroupMember, GroupState, JoinRequest } from './contacts/group-types.ts'
export type { ContactMedia, MediaDescription, MediaType, ReceivedMedia } from './media/media-types.ts'
export { MEDIA_TYPES } from './media/media-types.ts'
export type { Order, OrderResult, StanzaText } from './scenario/order.ts'
export type { Action, Direction, Rule, When } from './scenario/rule.ts'
export type { HeldStanza, RuleState, ScenarioState } from './scenario/scenario.ts'
export { createSimulator } from './simulator.ts'
export type {
  AccountInfo,
  Call,
  ContactCall,
  ContactMessage,
  ContactPresence,
  ContactProfile,
  ContactTyping,
  MediaAccess,
  MessageActions,
  NetworkStorage,
  OwnerMessage,
  PhonePresence,
  ReceivedMessage,
  SavedContact,
  ShownProfile,
  Simulator,
  SimulatorErrorCode,
  SimulatorOptions,
  SimulatorTimings,
  StorageChange,
} from './types.ts'
export { SimulatorError } from './types.ts'
