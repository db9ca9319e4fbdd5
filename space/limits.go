package space

// Every limit of a space, with its unit.
const (
	ManifestBytesMax = 512 << 10 // a manifest's canonical bytes
	FilesMax         = 1_024     // files of a space
	PathBytesMax     = 256       // a file's path
	FileBytesMax     = 4 << 20   // a file
	SpaceBytesMax    = 64 << 20  // all files of a space

	TokenBytesMax       = 64      // a space, prompt pack, catalog, context group
	PackNameBytesMax    = 56      // a pack's name: <pack>-v<major> is a target
	VersionBytesMax     = 64      // a version
	DescriptionBytesMax = 1 << 10 // description
	DisplayNameBytesMax = 128     // display_name
	CategoryBytesMax    = 64      // category
	MediaTypeBytesMax   = 64      // a file's media_type

	PromptsMax        = 32       // prompt packs
	PartsMax          = 64       // parts of a prompt pack, and of everything before a transcript
	TemplateBytesMax  = 64 << 10 // a file that is a template
	ShownBytesMax     = 1 << 20  // everything before a transcript
	SystemBytes       = 64 << 10 // what the system text of a step or a config counts there, whatever its length
	VarsMax           = 32       // variables of everything before a transcript
	FactNameBytesMax  = 64       // NAME of {{fact.NAME}}
	FactValueBytesMax = 256      // the value of a fact in a template
	ImagesMax         = 8        // images before a transcript
	ImagesBytesMax    = 8 << 20  // all of them together
	ParamsBytesMax    = 32 << 10 // a prompt pack's params, encoded
	FormatBytesMax    = 16 << 10 // a prompt pack's response_format, encoded

	CatalogsMax             = 32       // catalogs
	EntriesMax              = 512      // tools of a catalog
	WordsMax                = 512      // rewordings
	WordDescriptionBytesMax = 16 << 10 // a rewording's description
	SchemaBytesMax          = 64 << 10 // a rewording's args_schema, encoded

	GroupsMax = 64 // context groups

	SkillsMax           = 128       // skills
	LeftOutMax          = 128       // faulty skills that are left out
	SkillFilesMax       = 256       // resources of a skill
	SkillBodyBytesMax   = 128 << 10 // a skill's text
	SkillTextCharsMax   = 1_024     // a skill's description, in characters
	SkillNamesMax       = 128       // allowed_tools of a skill
	SkillInfosMax       = 64        // info of a skill
	SkillInfoCharsMax   = 500       // a value of info, in characters
	SkillIndexBytesMax  = 16 << 10  // the skill index in a prompt
	FrontmatterBytesMax = 16 << 10  // the text between the --- lines of a SKILL.md

	ToolsMax     = 256 // tools of a pack
	NeedsMax     = 32  // needs of a pack, a tool or a skill
	NeedBytesMax = 128 // a need
	LacksMax     = 32  // needs of a whole space that are not met

	ProblemsMax         = 64  // problems of a settlement
	DetailBytesMax      = 256 // a problem's detail
	ProblemPathBytesMax = 256 // a problem's path
)
