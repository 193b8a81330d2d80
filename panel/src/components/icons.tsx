import type { ReactNode } from 'react'

/** Drawn for this panel on a 20 px grid. Icons stand next to a word and are hidden from screen readers. */
function Icon({ children, size = 18 }: { children: ReactNode; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.6"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden
      focusable="false"
    >
      {children}
    </svg>
  )
}

type Size = { size?: number }

export const CopyIcon = (p: Size) => (
  <Icon {...p}>
    <rect x="7" y="7" width="9.5" height="9.5" rx="2" />
    <path d="M13 7V5.5a2 2 0 0 0-2-2H5.5a2 2 0 0 0-2 2V11a2 2 0 0 0 2 2H7" />
  </Icon>
)
export const CheckIcon = (p: Size) => (
  <Icon {...p}>
    <path d="m4 10.5 4 4 8-9" />
  </Icon>
)
export const PlusIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M10 4v12M4 10h12" />
  </Icon>
)
export const SearchIcon = (p: Size) => (
  <Icon {...p}>
    <circle cx="9" cy="9" r="5.2" />
    <path d="m13 13 3.5 3.5" />
  </Icon>
)
export const SunIcon = (p: Size) => (
  <Icon {...p}>
    <circle cx="10" cy="10" r="3.4" />
    <path d="M10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M4.7 15.3l1.1-1.1M14.2 5.8l1.1-1.1" />
  </Icon>
)
export const MoonIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M16 11.6A6.5 6.5 0 0 1 8.4 4a6.5 6.5 0 1 0 7.6 7.6Z" />
  </Icon>
)
export const GlobeIcon = (p: Size) => (
  <Icon {...p}>
    <circle cx="10" cy="10" r="7" />
    <path d="M3 10h14M10 3c2.2 2 3.2 4.4 3.2 7S12.2 15 10 17c-2.2-2-3.2-4.4-3.2-7S7.8 5 10 3Z" />
  </Icon>
)
export const GearIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M3 6h8M15 6h2M3 14h2M9 14h8" />
    <circle cx="13" cy="6" r="2" />
    <circle cx="7" cy="14" r="2" />
  </Icon>
)
export const SignOutIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M8 3.500H5.500a2 2 0 0 0-2 2v9a2 2 0 0 0 2 2H8M13 13.500l3.5-3.500L13 6.500M16 10H8" />
  </Icon>
)
export const SendIcon = (p: Size) => (
  <Icon {...p}>
    <path d="m3.5 9.5 13-6-5 13-2.5-5.2-5.5-1.800Z" />
  </Icon>
)
export const PhoneIcon = (p: Size) => (
  <Icon {...p}>
    <rect x="6" y="2.5" width="8" height="15" rx="2" />
    <path d="M9 15h2" />
  </Icon>
)
export const FlaskIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M8 3h4M8.7 3v5L4.3 15a1.5 1.5 0 0 0 1.3 2.200h8.800a1.5 1.5 0 0 0 1.3-2.200l-4.4-7V3M6.5 12.500h7" />
  </Icon>
)
export const ArrowIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M4 10h12M11.5 5.5 16 10l-4.5 4.5" />
  </Icon>
)
export const BackIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M16 10H4M8.5 5.5 4 10l4.5 4.5" />
  </Icon>
)
export const RepeatIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M4 9a6 6 0 0 1 10.5-3L16 7.500M16 3.500v4h-4M16 11a6 6 0 0 1-10.5 3L4 12.500M4 16.500v-4h4" />
  </Icon>
)
export const EyeIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M2.5 10S5.2 5 10 5s7.5 5 7.5 5-2.7 5-7.5 5-7.5-5-7.5-5Z" />
    <circle cx="10" cy="10" r="2.3" />
  </Icon>
)
export const WarningIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M10 3.2 17.5 16.500h-15L10 3.200ZM10 8.500v3.500M10 14.300v.1" />
  </Icon>
)
export const OutIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M6 14 14 6M7.5 6H14v6.5" />
  </Icon>
)
export const InIcon = (p: Size) => (
  <Icon {...p}>
    <path d="m14 6-8 8M12.5 14H6V7.5" />
  </Icon>
)
export const BellIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M5 14V9a5 5 0 0 1 10 0v5l1.5 1.500h-13L5 14ZM8.500 17.500h3" />
  </Icon>
)
export const UpIcon = (p: Size) => (
  <Icon {...p}>
    <path d="m5 12 5-5 5 5" />
  </Icon>
)
export const DownIcon = (p: Size) => (
  <Icon {...p}>
    <path d="m5 8 5 5 5-5" />
  </Icon>
)
export const FileIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M5.500 3h6l3.500 3.500V17H5.500ZM11.500 3v3.500H15" />
  </Icon>
)
export const DownloadIcon = (p: Size) => (
  <Icon {...p}>
    <path d="M10 3v9M6 8.500l4 4 4-4M4 16h12" />
  </Icon>
)
